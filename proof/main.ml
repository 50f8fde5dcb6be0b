(* The native program around what is extracted from the proof. It only reads and prints.

     checker FILE...     checks dumps that exactformer/verify/coq.py writes, one line for each:
                         `exact`; `not exact: ` and the first thing that is wrong; or
                         `not covered: ` and the first condition of the theorem that is not met,
                         which says nothing about the weights. Exit status 0 if all are exact, or 1.
     checker --proof     prints a hash of the proof's sources that this program was built from.
     checker --circuit   reads weights and states from standard input and prints what `iterate` and
                         `run` make of them, to be compared with model/circuit.py; and what an
                         iteration of the logarithmic layer does, with model/speculate.py.
     checker --machine   reads weights of a machine and batches of states from standard input and
                         prints what the iteration makes of them, to be compared with
                         model/machine.py.
     checker --texts     reads a machine and texts and prints its answers, by the definition, and
                         the states that they begin with, to be compared with domains/machines.py.
     checker --units     reads names of rules, each with a number of values and of slots, and prints
                         their units, to be compared with domains/units.py.
     checker --scan      reads maps and prints their scan, to be compared with model/scan.py.
     checker --speculate reads an algebra and batches of expressions and prints what the iterations
                         of the logarithmic layer make of them, to be compared with
                         model/speculate.py.

   Input is words between white space: names where names are expected, and whole numbers. *)

exception Bad of string

let words channel =
  let buffer = Scanf.Scanning.from_channel channel in
  fun () -> Scanf.bscanf buffer " %s" (fun word -> word)

let count next =
  let word = next () in
  match int_of_string_opt word with
  | Some n when n >= 0 -> n
  | _ -> raise (Bad (Printf.sprintf "expected a count, found %S" word))

let number next =
  let word = next () in
  try Z.of_string word
  with Invalid_argument _ -> raise (Bad (Printf.sprintf "expected a whole number, found %S" word))

let expect next name =
  let word = next () in
  if word <> name then raise (Bad (Printf.sprintf "expected %s, found %S" name word))

let named next name read = expect next name; read next

(* in order, which List.init does not promise *)
let many n read next =
  let rec go k made = if k = 0 then List.rev made else let x = read next in go (k - 1) (x :: made) in
  go n []

let listed read next = let n = count next in many n read next
let row = listed number
let matrix next = let n = count next in many n row next

let choice next choices =
  let word = next () in
  match List.assoc_opt word choices with
  | Some x -> x
  | None -> raise (Bad (Printf.sprintf "unexpected %S" word))

(* ---- a model ---- *)

let perceptron next act =
  let shift_1 = named next "shift_1" count in
  let w_1 = named next "W_1" matrix in
  let b_1 = named next "b_1" row in
  let shift_2 = named next "shift_2" count in
  let w_2 = named next "W_2" matrix in
  let b_2 = named next "b_2" row in
  Exact.{ act; shift_1; w_1; b_1; shift_2; w_2; b_2 }

let feedforward next =
  expect next "feedforward";
  match choice next [ ("relu", Some Exact.Relu); ("square", Some Exact.Square); ("table", None) ] with
  | Some act -> Exact.Network (perceptron next act)
  | None ->
      let bags = named next "bags" matrix in
      let results = named next "outputs" matrix in
      Exact.Table (bags, results)

let routing next =
  let slots = named next "slots" count in
  let g_PE = named next "G_PE" row in
  let g_R = named next "G_R" row in
  let w_Q = named next "W_Q" matrix in
  let w_K = named next "W_K" matrix in
  (slots, g_PE, g_R, w_Q, w_K)

let operator next =
  listed (fun next -> let arity = count next in let results = listed count next in (arity, results)) next

(* Where a condition of the theorem fails, the weights may be exact all the same. *)
let is_wrong = function
  | Exact.Wrong_gate _ | Exact.Wrong_empty | Exact.No_result _ | Exact.Wrong_row _ -> true
  | Exact.Wrong_size | Exact.Wide_routing | Exact.Out_of_range | Exact.Spans_touch _
  | Exact.Uncertain_empty | Exact.Uncertain_row _ -> false

let explain vocabulary values failure =
  let token t = List.nth vocabulary t in
  let operator o = token (2 + values + o) in
  let span o operands =
    operator o ^ " of " ^ String.concat " " (List.map (fun v -> token (2 + v)) operands) in
  match failure with
  | Exact.Wrong_size -> "the weights do not have the sizes of the algebra"
  | Exact.Wide_routing -> "routed sums may be larger than every format holds"
  | Exact.Out_of_range -> "a weight is no float32, or so small that a device may take it for zero"
  | Exact.Wrong_gate t -> "wrong gate of " ^ token t
  | Exact.Spans_touch (o, n) -> Printf.sprintf "spans may touch in %s of %d operands" (operator o) n
  | Exact.Wrong_empty -> "wrong row: the zero vector"
  | Exact.Uncertain_empty -> "within rounding of the threshold: the zero vector"
  | Exact.No_result (o, operands) -> "no result for " ^ span o operands
  | Exact.Wrong_row (o, operands, t) ->
      Printf.sprintf "wrong row: %s in %s" (token t) (span o operands)
  | Exact.Uncertain_row (o, operands, t) ->
      Printf.sprintf "within rounding of the threshold: %s in %s" (token t) (span o operands)

let check_algebra next =
  let prefix = choice next [ ("prefix", true); ("infix", false) ] in
  let vocabulary = named next "vocabulary" (listed (fun next -> next ())) in
  let values = named next "values" count in
  if values = 0 then raise (Bad "expected a value, found none");
  let operators = named next "operators" (listed operator) in
  let slots, g_PE, g_R, w_Q, w_K = routing next in
  let ff = feedforward next in
  expect next "end";
  let algebra = Exact.{ last_value = values - 1; operators; prefix } in
  if List.length vocabulary <> Exact.vocabulary_size algebra then
    raise (Bad "the vocabulary does not have the size of the algebra");
  Option.map
    (fun failure -> (is_wrong failure, explain vocabulary values failure))
    (Exact.verdict algebra slots g_PE g_R w_Q w_K ff)

(* ---- a machine ---- *)

let perhaps next =
  match next () with
  | "-" -> None
  | word -> Some (count (fun () -> word))

let machine next =
  let begins = named next "start" count in
  let next_states = named next "transitions" (listed (listed perhaps)) in
  let answer_ids = named next "answers" (listed (listed perhaps)) in
  let mark = named next "mark" perhaps in
  Exact.{ begins; next_states; answer_ids; mark }

let is_wrong_machine = function
  | Exact.(Row_fault (Wrong_answer _ | No_next_state _)) -> true
  | Exact.(Row_fault (Uncertain _ | Not_closed)) -> false
  | Exact.(Machine_size | Machine_range | Gate_of_key _) -> false

let explain_machine vocabulary failure =
  let token t = List.nth vocabulary t in
  let after = function
    | [] -> " at the beginning"
    | text -> " after " ^ String.concat " " (List.map token text) in
  match failure with
  | Exact.Machine_size -> "the weights do not have the sizes of the machine"
  | Exact.Machine_range -> "a weight is no float32, or so small that a device may take it for zero"
  | Exact.Gate_of_key t -> "the gate of the key is not 1 on " ^ token t
  | Exact.Row_fault (Exact.Wrong_answer (text, t)) -> "wrong answer: " ^ token t ^ after text
  | Exact.Row_fault (Exact.No_next_state (text, t)) -> "no next state: " ^ token t ^ after text
  | Exact.Row_fault (Exact.Uncertain (text, t)) ->
      "within rounding of the threshold: " ^ token t ^ after text
  | Exact.Row_fault Exact.Not_closed -> "the search for pairs of states did not end"

let check_machine next =
  let vocabulary = named next "vocabulary" (listed (fun next -> next ())) in
  let machine = machine next in
  let states = named next "states" count in
  let g_K = named next "G_K" row in
  let ff = feedforward next in
  expect next "end";
  Option.map
    (fun failure -> (is_wrong_machine failure, explain_machine vocabulary failure))
    (Exact.verdict_machine machine (List.length vocabulary) states g_K ff)

let check path =
  let channel = open_in path in
  let next = words channel in
  let failure = (choice next [ ("notation", check_algebra); ("machine", check_machine) ]) next in
  close_in channel;
  match failure with
  | None -> print_endline "exact"; true
  | Some (wrong, reason) ->
      print_endline ((if wrong then "not exact: " else "not covered: ") ^ reason);
      false

(* ---- the circuit ---- *)

let show_row r = String.concat " " (List.map Z.to_string r)
let show name lines = print_endline name; List.iter print_endline lines
let bools next = List.map (fun n -> n <> 0) (listed count next)
let bit b = if b then "1" else "0"

let circuit () =
  let next = words stdin in
  let d = named next "D" count in
  let s, g_PE, g_R, w_Q, w_K = routing next in
  let ff = feedforward next in
  let w = Exact.{ d; s; g_PE; g_R; w_Q; w_K; f = Exact.compute ff } in
  let sequence next = let inside = bools next in let x = matrix next in (inside, x) in
  let rec go () =
    match next () with
    | "iterate" ->
        let inside, x = sequence next in
        let a = Exact.depth_counts (List.map (Exact.gate_rows w) x) in
        let p = Exact.reduction_mask a inside in
        let ids = Exact.clusters p in
        let r = Exact.ranks (List.map (Exact.rank_gate_rows w) x) ids in
        show "A" (List.map (fun (f, b) -> show_row [ f; b ]) a);
        show "P" [ String.concat " " (List.map bit p) ];
        show "ids" [ String.concat " " (List.map string_of_int ids) ];
        show "R" [ show_row r ];
        show "H" (List.map show_row (Exact.typed_attention w x ids r));
        show "X" (List.map show_row (Exact.iterate_rows w inside x));
        go ()
    | "run" ->
        let batch = listed sequence next in
        List.iter
          (fun (x, iterations) -> show (Printf.sprintf "run %d" iterations) (List.map show_row x))
          (Exact.run_rows w batch);
        go ()
    | "log" ->
        let values = count next in
        let operators = List.init (d - 2 - values) (fun _ -> []) in
        let a = Exact.{ last_value = values - 1; operators; prefix = true } in
        let batch = listed matrix next in
        List.iter (fun x -> show "log" (List.map show_row x)) (Exact.iterate_log_rows a w batch);
        go ()
    | "end" -> ()
    | word -> raise (Bad (Printf.sprintf "expected iterate, run, log or end, found %S" word))
  in
  go ()

(* ---- units ---- *)

let rules =
  let complement units n slots = Exact.complement_of n (units n slots) in
  Exact.[
    ("max", max_units); ("min", min_units); ("median", median_units); ("majority", median_units);
    ("median-mean", median_mean_units); ("sum", sum_units); ("saturating-sum", saturating_units);
    ("first", first_units); ("difference", difference_units); ("implies", implies_units);
    ("complement", complement max_units); ("nor", complement max_units);
    ("nand", complement min_units) ]

let units () =
  let next = words stdin in
  let rec go () =
    match next () with
    | "end" -> ()
    | name when List.mem_assoc name rules ->
        let n = count next in
        let slots = count next in
        let made = (List.assoc name rules) n slots in
        let show_unit one =
          let form = Exact.[ one.bias; one.cap; one.period; one.code ] in
          print_endline (String.concat " | " (List.map show_row (one.Exact.adding @ [ form ]))) in
        List.iter show_unit made.Exact.parts;
        print_endline ("read " ^ String.concat " " (List.map string_of_int made.Exact.readout));
        go ()
    | word -> raise (Bad (Printf.sprintf "expected a rule or end, found %S" word))
  in
  go ()

(* ---- the logarithmic layer ---- *)

let show_counts l = String.concat " " (List.map string_of_int l)

let scan () =
  let next = words stdin in
  let rec go () =
    match next () with
    | "end" -> ()
    | "maps" ->
        let w = count next in
        let maps = listed (many w count) next in
        let last = count next in
        print_endline (show_counts (Exact.scan_from_right w maps last));
        go ()
    | word -> raise (Bad (Printf.sprintf "expected maps or end, found %S" word))
  in
  go ()

let speculate () =
  let next = words stdin in
  let values = named next "values" count in
  let operators = named next "operators" (listed operator) in
  let a = Exact.{ last_value = values - 1; operators; prefix = true } in
  let rec expression next =
    match next () with
    | "value" -> Exact.plain_leaf a (count next)
    | "span" ->
        let o = count next in
        Exact.plain_node a o (listed expression next)
    | word -> raise (Bad (Printf.sprintf "expected value or span, found %S" word)) in
  let rec iterations batch =
    if List.exists (fun e -> Exact.plain_strahler a e > 0) batch then (
      let ((holes, f), u), top = Exact.plain_step a batch in
      show "holes" [ show_counts holes ];
      show "F" (List.map show_counts f);
      show "u" [ show_counts u ];
      show "top" [ String.concat " " (List.map bit top) ];
      iterations (List.map (Exact.plain_next a) batch))
    else show "values" [ show_counts (List.map (Exact.plain_value a) batch) ] in
  let rec go () =
    match next () with
    | "end" -> ()
    | "batch" ->
        let batch = listed expression next in
        show "strahler" [ show_counts (List.map (Exact.plain_strahler a) batch) ];
        iterations batch;
        go ()
    | word -> raise (Bad (Printf.sprintf "expected batch or end, found %S" word))
  in
  go ()

(* ---- the layer of machines ---- *)

let machine_layer () =
  let next = words stdin in
  let d = named next "D" count in
  let w = named next "W" count in
  let backwards = choice next [ ("left", false); ("right", true) ] in
  let g_K = named next "G_K" row in
  let ff = feedforward next in
  let sequence next = let inside = bools next in let x = matrix next in (inside, x) in
  let rec go () =
    match next () with
    | "end" -> ()
    | "batch" ->
        let step = count next in
        let batch = listed sequence next in
        List.iter
          (fun x -> show "X" (List.map show_row x))
          (Exact.iterate_machine_rows d w g_K backwards ff step batch);
        go ()
    | word -> raise (Bad (Printf.sprintf "expected batch or end, found %S" word))
  in
  go ()

(* what a machine answers by its definition, and the state that its text begins with *)
let texts () =
  let next = words stdin in
  let d = named next "D" count in
  let backwards = choice next [ ("left", false); ("right", true) ] in
  let m = machine next in
  let answers text =
    let read = Exact.turned backwards text in
    match m.Exact.mark with
    | Some mark -> Option.map (fun y -> [ y ]) (Exact.answered m m.Exact.begins mark read)
    | None -> Option.map (Exact.turned backwards) (Exact.transduced m m.Exact.begins read) in
  let rec go () =
    match next () with
    | "end" -> ()
    | "text" ->
        let text = listed count next in
        show "answers" [ Option.fold ~none:"-" ~some:show_counts (answers text) ];
        let _, x = Exact.machine_input m d backwards (text, []) in
        show "X" (List.map show_row x);
        go ()
    | word -> raise (Bad (Printf.sprintf "expected text or end, found %S" word))
  in
  go ()

let comparisons =
  [ ("--circuit", circuit); ("--machine", machine_layer); ("--texts", texts); ("--units", units);
    ("--scan", scan); ("--speculate", speculate) ]

let () =
  let fail where reason = prerr_endline (where ^ ": " ^ reason); exit 2 in
  match List.tl (Array.to_list Sys.argv) with
  | [ "--proof" ] -> print_endline Built_from.sha256
  | [ option ] when List.mem_assoc option comparisons -> (
      try (List.assoc option comparisons) () with Bad reason -> fail "standard input" reason)
  | [] -> fail "checker" "expected files to check, or one of the options of its first lines"
  | files ->
      let right path =
        try check path with Bad reason -> fail path reason | Sys_error reason -> fail "checker" reason in
      exit (if List.for_all Fun.id (List.map right files) then 0 else 1)
