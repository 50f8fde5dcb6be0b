// What is chosen, typed, opened and drawn at random, by pointer and by key.

const TYPING = 350; // milliseconds without a key after which what was typed is traced

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
  run = null; // that of another view
  const known = models.algebras.some(({ name }) => name === asked.algebra);
  const unknown = asked.algebra !== null && !known ? asked.algebra : null;
  view.algebra = known ? asked.algebra : models.first.algebra;
  const own = view.algebra === models.first.algebra ? models.first.weights : "constructed";
  view.weights = EMBEDDED ? own : (asked.weights ?? own);
  view.kind = EMBEDDED ? kindOfText(EMBEDDED.trace) : asked.kind;
  view.text = EMBEDDED ? EMBEDDED.trace[view.kind] : (asked.text ?? exampleNow());
  view.statement = asked.statement;
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

/** A text of the kind in view; an expression where the algebra has no programs. */
function exampleNow() {
  const { examples } = algebraNow();
  if (!(view.kind in examples)) view.kind = "expression";
  return examples[view.kind];
}

/** Fields and lists say what the view says. */
function showChoices() {
  const { layers, weights, vocabulary: symbols, kinds, examples, sizes } = algebraNow();
  vocabulary = new Vocabulary(symbols, kinds);
  const random = view.weights.startsWith("random/");
  byId("algebra").value = view.algebra;
  byId("weights").replaceChildren(...weightOptions(weights));
  byId("weights").value = random ? "random/0" : view.weights;
  byId("seed-label").hidden = !random;
  if (random) byId("seed").value = view.weights.slice("random/".length);
  byId("iterations").value = view.iterations;
  byId("iterations-label").hidden = layers.length < 2;
  byId("kind").value = view.kind;
  for (const option of byId("kind").options) option.disabled = !(option.value in examples);
  const size = sizes[view.kind]; // what is given of a random text
  byId("drawing").hidden = EMBEDDED !== null || size === undefined;
  byId("size-name").textContent = size;
  byId("depth").max = models.limits[size];
  byId("expression").ariaLabel = view.kind === "program" ? "Program" : "Expression";
  byId("expression").value = view.text;
  fitField();
}

/** The field grows with its text, up to a few lines. */
function fitField() {
  const field = byId("expression");
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight + 2, 132)}px`;
}

function chooseAlgebra(name) {
  const chosen = models.algebras.find((algebra) => algebra.name === name);
  const weights = chosen.weights.includes(view.weights) ? view.weights : "constructed";
  Object.assign(view, { algebra: name, weights, statement: null, position: null });
  view.text = exampleNow();
  showChoices();
  return Promise.all([loadWeights(), loadTrace()]);
}

function chooseKind(name) {
  Object.assign(view, { kind: name, statement: null, position: null });
  view.text = exampleNow();
  showChoices();
  return loadTrace();
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
  Object.assign(view, { kind: "expression", iterations: "depth" });
  return tryText(text);
}

function tryText(text) {
  Object.assign(view, { text, statement: null, position: null });
  showChoices();
  showTab("trace");
  return loadTrace();
}

/** Read a text from a file on this machine; it goes into the field. */
async function openFile(file) {
  if (!file) return;
  try {
    if (file.size > 4 * models.limits.characters)
      throw new Refusal({ error: `${file.name} has ${plural(file.size, "byte")}, too many to draw` });
    const text = (await file.text()).replaceAll("\r\n", "\n");
    if (text.includes(";") && "program" in algebraNow().examples) view.kind = "program";
    await tryText(text);
  } catch (error) {
    showProblem(error);
  }
}

async function drawAtRandom() {
  const seed = Math.floor(Math.random() * 1e9);
  try {
    const { kind, algebra } = view;
    const size = byId("depth").value;
    const drawn = await source.sample({ algebra, [algebraNow().sizes[kind]]: size, seed });
    if (view.kind === kind) await tryText(drawn[kind]);
  } catch (error) {
    showProblem(error);
  }
}

function wire() {
  let pause;
  const traceTyped = () => {
    clearTimeout(pause);
    if (view.text === byId("expression").value && byId("problem").hidden) return;
    view.text = byId("expression").value;
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
    const newLine = view.kind === "program" && !event.ctrlKey && !event.metaKey;
    if (event.key !== "Enter" || event.shiftKey || newLine) return;
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
  byId("kind").addEventListener("change", (event) => chooseKind(event.target.value));
  byId("draw").addEventListener("click", drawAtRandom);
  byId("open").addEventListener("click", () => byId("file").click());
  byId("file").addEventListener("change", async ({ target }) => {
    await openFile(target.files[0]);
    target.value = ""; // so that the same file can be opened again, after a change
  });
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
    n: () => stepStatement(1),
    p: () => stepStatement(-1),
    r: () => byId("drawing").hidden || drawAtRandom(),
    l: () => byId("iterations-label").hidden || EMBEDDED || turnIterations(),
    "/": () => EMBEDDED || byId("expression").focus(),
    w: () => showTab(view.tab === "trace" ? "weights" : "trace"),
    "+": () => sheet.zoom(1),
    "=": () => sheet.zoom(1),
    "-": () => sheet.zoom(-1),
    t: turnTheme,
    Escape: letGo,
    "?": () => byId("help-dialog").showModal(),
  });
}

/** A file has one trace: nothing in it can be chosen or typed. */
function freeze() {
  for (const id of ["algebra", "weights", "seed", "iterations", "kind"]) byId(id).disabled = true;
  byId("expression").readOnly = true;
  byId("open").hidden = true;
}

start().catch(showProblem);
