// What is shown: the run of a text, one iteration of it, one statement and one position of that.

const view = {
  algebra: null,
  weights: null,
  kind: "expression", // what the text is: an expression, or a program
  text: "",
  iterations: "depth",
  frame: 0,
  statement: null, // the name of the one that is selected
  position: null,
  tab: "trace",
};
let models, vocabulary, answer, run;
let inView, trace, frame; // the statement in view, its trace, and what it is now
let focus = 0; // where to look if nothing is under the pointer or selected
let hovered = null;
let hoveredStatement = null;
let asking = new AbortController();

const events = { hover, pin };
const sheet = new Sheet(events);
const tree = new Tree(events);
const wires = new Wires({ hover: hoverStatement, pin: pinStatement });
const player = new Player(showFrame);

function showLegend() {
  const several = run.statements.some((statement) =>
    ownFrames(statement).some(({ tokens }) =>
      tokens.some((symbol) => vocabulary.kind(symbol) === "plain"),
    ),
  );
  byId("legend").replaceChildren(
    ...["parenthesis", "value", "operator"].map((kind) =>
      html("span", { class: `ink-${kind}` }, html("i"), kind),
    ),
    html("span", { class: "ink-empty" }, html("i", { class: "dot" }), "nothing: the zero vector"),
    run.named ? html("span", { class: "ink-plain" }, html("i"), "name: waits for its value") : "",
    several
      ? html(
          "span",
          { class: "ink-plain" },
          html("i"),
          inView.picture.several,
        )
      : "",
  );
}

async function loadWeights() {
  byId("verdict").textContent = "checking…";
  byId("verdict").className = "verdict";
  const asked = [view.algebra, view.weights].join();
  try {
    const data = await source.weights(view.algebra, view.weights);
    if (asked !== [view.algebra, view.weights].join()) return; // another choice was made meanwhile
    byId("verdict").textContent = {
      exact: "proved exact",
      inexact: "not exact",
      undecided: "undecided",
      unfinished: "undecided",
    }[data.certificate.verdict];
    byId("verdict").classList.add(data.certificate.verdict);
    showWeights(data, vocabulary, EMBEDDED ? null : watchFailing);
  } catch (error) {
    byId("verdict").textContent = "no weights";
    byId("view-weights").replaceChildren(html("p", { class: "problem" }, error.message));
  }
}

/** Trace the text and show a frame of it; a later call overtakes an earlier one. */
async function loadTrace(frame = 0) {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  document.body.ariaBusy = "true";
  const { found, problem } = await source.trace(view, signal).then(
    (found) => ({ found }),
    (problem) => ({ problem }),
  );
  if (signal.aborted) return; // the later call shows its own
  showProblem(problem);
  if (!problem) showRun(found, frame);
  document.body.ariaBusy = "false";
}

function showRun(found, number) {
  answer = found;
  run = runOf(answer);
  const text = answer[kindOfText(answer)];
  document.title = `${[...text].slice(0, 60).join("")} · exactformer`;
  if (!run.statements.some(({ name }) => name === view.statement)) view.statement = null;
  hoveredStatement = null;
  trace = null; // that of another run
  wires.start(run, vocabulary);
  player.start(run.end, number);
  showResult();
  showLegend();
}

function showFrame(number) {
  if (!run) return;
  view.frame = number;
  if (run.named) wires.show(number);
  showStatement();
  saveAddress();
}

/** The statement in view, and what it is now: its columns, its circuit and one of its positions. */
function showStatement() {
  const pinned = run.statements.find(({ name }) => name !== null && name === view.statement);
  const statement = hoveredStatement ?? pinned ?? leading(run, view.frame);
  inView = statement;
  if (trace !== statement.trace) {
    trace = statement.trace;
    if (view.position !== null && view.position >= trace.tokens.length) view.position = null;
    tree.start(trace, vocabulary, statement.picture);
  }
  frame = frameOf(run, statement, view.frame);
  const { step, picture, waits } = frame;
  byId("statement").hidden = !run.named;
  byId("statement").textContent = `${cut(statement.name ?? "", 24)} =`;
  byId("sheet-title").textContent = step
    ? `Iteration ${view.frame + 1}`
    : waits
      ? "Waiting"
      : "The whole reduction";
  byId("sheet-caption").textContent = step
    ? picture.summary(step)
    : waits
      ? `It waits for ${waits.join(", ")}.`
      : ending(picture);
  byId("tree-caption").textContent = step
    ? `${picture.reducing(step)} about to be computed`
    : waits
      ? "waits for its names"
      : "what is left";
  sheet.show(frame, stagesOf(frame, ownFrames(statement)), vocabulary);
  showEvents(frame);
  tree.show(frame);
  wires.highlight(hoveredStatement, pinned, statement);
  focus = focusOf(frame);
  sheet.reveal(focus);
  tree.reveal(focus);
  light(null);
}

/** Where to look: the selection, or else the nearest place where something happens. */
function focusOf({ tokens, step, picture }) {
  if (view.position !== null) return view.position;
  const filled = (state) => [...state.keys()].filter((i) => state[i] !== EMPTY);
  const acting = step ? picture.acting(step, vocabulary) : filled(tokens);
  const computed = step ? acting.filter((i) => step.state[i] !== EMPTY) : [];
  return sheet.nearest(computed.length ? computed : acting) ?? 0;
}

function ending({ halts }) {
  const iterations = plural(trace.steps.length, "iteration");
  if (trace.value !== null) return `${halts}, after ${iterations}.`;
  return `It stops after ${iterations}, and what is left is no single value.`;
}

function showResult() {
  const right = answer.value === answer.expected;
  const found = answer.value === null ? "no single value" : answer.value;
  byId("result").replaceChildren(
    html("span", { class: "value-label" }, "value"),
    html("b", { id: "value", class: right ? "" : "off", title: found }, found),
    html(
      "span",
      { class: right ? "right" : "wrong" },
      right ? "✓ as the oracle says" : `✗ the oracle says ${answer.expected}`,
    ),
  );
}

/** A message under the field, and the place in the text marked in it. */
function showProblem(error) {
  byId("problem").hidden = !error;
  byId("expression").setAttribute("aria-invalid", String(Boolean(error)));
  byId("mirror").replaceChildren();
  document.body.classList.toggle("stale", Boolean(error));
  if (!error) return;
  byId("problem").textContent = error.message;
  if (error.offset === undefined) return;
  const characters = [...view.text]; // offsets count characters, not halves of them
  const found = characters[error.offset] ?? "\n";
  const atEnd = found === "\n"; // of a line: the mark is a space, and the line still ends
  byId("mirror").replaceChildren(
    characters.slice(0, error.offset).join(""),
    html("mark", { class: "caret" }, atEnd ? " " : found),
    characters.slice(error.offset + (atEnd ? 0 : 1)).join(""),
  );
  byId("mirror").scrollTop = byId("expression").scrollTop;
}

function hover(position) {
  if (position !== hovered) light(position);
}

/** Keep a position selected, and with it the statement that it is in. */
function pin(position) {
  if (!run) return;
  view.position = position === view.position ? null : position;
  const same = view.position === null || view.statement === inView.name;
  if (same) {
    light(null);
  } else {
    view.statement = inView.name;
    showStatement();
  }
  saveAddress();
}

/** Show the statement under the pointer as if it were selected. */
function hoverStatement(statement) {
  if (!run || statement === hoveredStatement) return;
  hoveredStatement = statement;
  showStatement();
}

function pinStatement(statement) {
  if (!run) return;
  view.statement = statement.name === view.statement ? null : statement.name;
  view.position = null;
  showStatement();
  saveAddress();
}

/** The next statement in the order of the text, or another as many further on. */
function stepStatement(by) {
  if (!run?.named) return;
  const count = run.statements.length;
  const at = run.statements.findIndex(({ name }) => name === view.statement);
  const next = run.statements[at < 0 ? (by > 0 ? 0 : count - 1) : (at + by + count) % count];
  hoveredStatement = null;
  view.statement = null;
  pinStatement(next);
  wires.reveal(wires.place(next));
}

/** Let go of a position, or else of a statement. */
function letGo() {
  if (view.position === null) view.statement = null;
  view.position = null;
  if (run) showStatement();
  saveAddress();
}

/** Light one position up everywhere: in the columns, in the circuit and in words. */
function light(position) {
  hovered = position;
  if (!run) return;
  sheet.highlight(hovered, view.position);
  tree.highlight(hovered, view.position);
  showDetails(frame, hovered ?? view.position ?? focus, vocabulary);
}

function showTab(name) {
  view.tab = name;
  for (const tab of ["trace", "weights"]) {
    byId(`view-${tab}`).hidden = tab !== name;
    byId(`tab-${tab}`).setAttribute("aria-selected", String(tab === name));
  }
  document.body.dataset.tab = name;
  if (run) saveAddress();
  if (run && name === "trace") player.go(view.frame);
}

function saveAddress() {
  const choice = EMBEDDED
    ? {}
    : {
        algebra: view.algebra,
        weights: view.weights,
        [view.kind]: view.text,
        iterations: view.iterations === "log" ? "log" : null,
      };
  writeAddress({
    ...choice,
    iteration: view.frame + 1,
    statement: view.statement,
    position: view.position,
    view: view.tab === "weights" ? "weights" : null,
  });
}
