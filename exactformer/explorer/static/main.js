// The page: what is chosen, what is shown, and how one leads to the other.

const TYPING = 350; // milliseconds without a key after which what was typed is traced

const view = {
  algebra: null,
  weights: null,
  expression: "",
  iterations: "depth",
  frame: 0,
  position: null,
  tab: "trace",
};
let models, vocabulary, trace, frames;
let focus = 0; // where to look if nothing is under the pointer or selected
let hovered = null;
let asking = new AbortController();

const events = { hover, pin };
const sheet = new Sheet(events);
const tree = new Tree(events);
const player = new Player(showFrame);

async function start() {
  models = await source.models();
  byId("algebra").replaceChildren(
    ...models.algebras.map(({ name }) => html("option", { value: name }, name)),
  );
  fillHelp();
  wire();
  if (EMBEDDED) freeze();
  await restore();
}

/** Take the view from the address; whatever it does not say is as at the first start. */
async function restore() {
  const asked = readAddress();
  frames = null; // those of another view
  const known = models.algebras.some(({ name }) => name === asked.algebra);
  const unknown = asked.algebra !== null && !known ? asked.algebra : null;
  view.algebra = known ? asked.algebra : models.first.algebra;
  const own = view.algebra === models.first.algebra ? models.first.weights : "constructed";
  view.weights = EMBEDDED ? own : (asked.weights ?? own);
  view.expression = EMBEDDED
    ? EMBEDDED.trace.expression
    : (asked.expression ?? algebraNow().example);
  view.iterations = EMBEDDED ? EMBEDDED.trace.iterations : asked.iterations;
  view.position = asked.position;
  showChoices();
  showTab(asked.view);
  await Promise.all([loadWeights(), loadTrace((asked.iteration ?? 1) - 1)]);
  if (unknown) showProblem(new Refusal({ error: `the address names an unknown task: ${unknown}` }));
}

function algebraNow() {
  return models.algebras.find(({ name }) => name === view.algebra);
}

/** Fields and lists say what the view says. */
function showChoices() {
  const { layers, weights, vocabulary: symbols, kinds } = algebraNow();
  vocabulary = new Vocabulary(symbols, kinds);
  const random = view.weights.startsWith("random/");
  byId("algebra").value = view.algebra;
  byId("weights").replaceChildren(...weightOptions(weights));
  byId("weights").value = random ? "random/0" : view.weights;
  byId("seed-label").hidden = !random;
  if (random) byId("seed").value = view.weights.slice("random/".length);
  byId("iterations").value = view.iterations;
  byId("iterations-label").hidden = layers.length < 2;
  byId("expression").value = view.expression;
  byId("depth").max = models.limits.depth;
  fitField();
}

function showLegend() {
  const several = frames.some(({ tokens }) =>
    tokens.some((symbol) => vocabulary.kind(symbol) === "plain"),
  );
  byId("legend").replaceChildren(
    ...["parenthesis", "value", "operator"].map((kind) =>
      html("span", { class: `ink-${kind}` }, html("i"), kind),
    ),
    html("span", { class: "ink-empty" }, html("i", { class: "dot" }), "nothing: the zero vector"),
    several
      ? html(
          "span",
          { class: "ink-plain" },
          html("i"),
          "#2: two tokens in one place, which is wrong",
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

/** Trace the expression and show a frame of it; a later call overtakes an earlier one. */
async function loadTrace(frame = 0) {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  document.body.ariaBusy = "true";
  const { answer, problem } = await source.trace(view, signal).then(
    (answer) => ({ answer }),
    (problem) => ({ problem }),
  );
  if (signal.aborted) return; // the later call shows its own
  showProblem(problem);
  if (!problem) showTrace(answer, frame);
  document.body.ariaBusy = "false";
}

function showTrace(answer, frame) {
  trace = answer;
  document.title = `${[...trace.expression].slice(0, 60).join("")} · exactformer`;
  const picture = PICTURES[trace.layer] ?? SAID; // what it says, drawn as it is
  frames = framesOf(trace, picture);
  if (view.position !== null && view.position >= trace.tokens.length) view.position = null;
  tree.start(trace, vocabulary, picture);
  player.start(trace.steps.length, frame);
  showResult();
  showLegend();
}

function showFrame(number) {
  if (!frames) return;
  view.frame = number;
  const frame = frames[number];
  const { step, picture } = frame;
  byId("sheet-title").textContent = step ? `Iteration ${number + 1}` : "The whole reduction";
  byId("sheet-caption").textContent = step ? picture.summary(step) : ending(picture);
  byId("tree-caption").textContent = step
    ? `${picture.reducing(step)} about to be computed`
    : "what is left";
  sheet.show(frame, stagesOf(frames, number), vocabulary);
  showEvents(frame);
  tree.show(frame);
  focus = focusOf(frame);
  sheet.reveal(focus);
  tree.reveal(focus);
  light(null);
  saveAddress();
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
  const right = trace.value === trace.expected;
  const found = trace.value === null ? "no single value" : trace.value;
  byId("result").replaceChildren(
    html("span", { class: "value-label" }, "value"),
    html("b", { id: "value", class: right ? "" : "off" }, found),
    html(
      "span",
      { class: right ? "right" : "wrong" },
      right ? "✓ as the oracle says" : `✗ the oracle says ${trace.expected}`,
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
  const characters = [...view.expression]; // offsets count characters, not halves of them
  const after = characters.slice(error.offset + 1).join("");
  byId("mirror").replaceChildren(
    characters.slice(0, error.offset).join(""),
    html("mark", { class: "caret" }, characters[error.offset] ?? " "),
    after,
  );
}

/** The field grows with its text, up to a few lines. */
function fitField() {
  const field = byId("expression");
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight + 2, 132)}px`;
}

function hover(position) {
  if (position !== hovered) light(position);
}

function pin(position) {
  view.position = position === view.position ? null : position;
  light(null);
  saveAddress();
}

/** Light one position up everywhere: in the columns, in the circuit and in words. */
function light(position) {
  hovered = position;
  if (!frames) return;
  sheet.highlight(hovered, view.position);
  tree.highlight(hovered, view.position);
  showDetails(frames[view.frame], hovered ?? view.position ?? focus, vocabulary);
}

function showTab(name) {
  view.tab = name;
  for (const tab of ["trace", "weights"]) {
    byId(`view-${tab}`).hidden = tab !== name;
    byId(`tab-${tab}`).setAttribute("aria-selected", String(tab === name));
  }
  document.body.dataset.tab = name;
  if (frames) saveAddress();
  if (frames && name === "trace") player.go(view.frame);
}

function saveAddress() {
  const choice = EMBEDDED
    ? {}
    : {
        algebra: view.algebra,
        weights: view.weights,
        expression: view.expression,
        iterations: view.iterations === "log" ? "log" : null,
      };
  writeAddress({
    ...choice,
    iteration: view.frame + 1,
    position: view.position,
    view: view.tab === "weights" ? "weights" : null,
  });
}

function chooseAlgebra(name) {
  const chosen = models.algebras.find((algebra) => algebra.name === name);
  const weights = chosen.weights.includes(view.weights) ? view.weights : "constructed";
  Object.assign(view, { algebra: name, weights, expression: chosen.example, position: null });
  showChoices();
  return Promise.all([loadWeights(), loadTrace()]);
}

function chooseWeights(name) {
  view.weights = name;
  showChoices();
  return Promise.all([loadWeights(), loadTrace(view.frame)]);
}

function chooseIterations(name) {
  view.iterations = name;
  byId("iterations").value = name;
  return loadTrace();
}

function turnIterations() {
  return chooseIterations(view.iterations === "log" ? "depth" : "log");
}

/** Only the paper's layer runs weights that fail. */
function watchFailing(text) {
  view.iterations = "depth";
  byId("iterations").value = "depth";
  return tryExpression(text);
}

function tryExpression(text) {
  view.expression = text;
  view.position = null;
  byId("expression").value = text;
  fitField();
  showTab("trace");
  return loadTrace();
}

async function drawAtRandom() {
  const seed = Math.floor(Math.random() * 1e9);
  try {
    const drawn = await source.sample(view.algebra, byId("depth").value, seed);
    await tryExpression(drawn.expression);
  } catch (error) {
    showProblem(error);
  }
}

function wire() {
  let pause;
  const traceTyped = () => {
    clearTimeout(pause);
    if (view.expression === byId("expression").value && byId("problem").hidden) return;
    view.expression = byId("expression").value;
    view.position = null;
    loadTrace();
  };
  byId("expression").addEventListener("input", () => {
    fitField();
    byId("mirror").replaceChildren();
    clearTimeout(pause);
    pause = setTimeout(traceTyped, TYPING);
  });
  byId("expression").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    traceTyped();
  });
  byId("expression").addEventListener("scroll", () => {
    byId("mirror").scrollTop = byId("expression").scrollTop;
  });
  byId("algebra").addEventListener("change", (event) => chooseAlgebra(event.target.value));
  byId("weights").addEventListener("change", (event) => chooseWeights(event.target.value));
  byId("seed").addEventListener("change", (event) =>
    chooseWeights(`random/${Math.abs(Math.trunc(event.target.value)) % 1e9}`),
  );
  byId("iterations").addEventListener("change", (event) => chooseIterations(event.target.value));
  byId("draw").addEventListener("click", drawAtRandom);
  byId("verdict").addEventListener("click", () => showTab("weights"));
  byId("tab-trace").addEventListener("click", () => showTab("trace"));
  byId("tab-weights").addEventListener("click", () => showTab("weights"));
  byId("wider").addEventListener("click", () => sheet.zoom(1));
  byId("narrower").addEventListener("click", () => sheet.zoom(-1));
  byId("tree-in").addEventListener("click", () => tree.zoom(1));
  byId("tree-out").addEventListener("click", () => tree.zoom(-1));
  byId("theme").addEventListener("click", turnTheme);
  byId("help").addEventListener("click", () => byId("help-dialog").showModal());
  window.addEventListener("hashchange", restore);
  listenToKeys({
    ArrowRight: () => player.go(player.at + 1),
    ArrowLeft: () => player.go(player.at - 1),
    Home: () => player.go(0),
    End: () => player.go(player.end),
    " ": () => player.toggle(),
    r: () => EMBEDDED || drawAtRandom(),
    l: () => byId("iterations-label").hidden || EMBEDDED || turnIterations(),
    "/": () => EMBEDDED || byId("expression").focus(),
    w: () => showTab(view.tab === "trace" ? "weights" : "trace"),
    "+": () => sheet.zoom(1),
    "=": () => sheet.zoom(1),
    "-": () => sheet.zoom(-1),
    t: turnTheme,
    Escape: () => pin(view.position),
    "?": () => byId("help-dialog").showModal(),
  });
}

/** A file has one trace: nothing in it can be chosen or typed. */
function freeze() {
  for (const id of ["algebra", "weights", "seed", "iterations"]) byId(id).disabled = true;
  byId("expression").readOnly = true;
  byId("drawing").hidden = true;
}

start().catch(showProblem);
