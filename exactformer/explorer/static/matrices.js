// The weights and what the certificate says of them.

const CELL = 22; // pixels of an entry of a small matrix
const FEW = 24; // columns up to which a matrix is drawn entry by entry, with its numbers

// Title, caption, and which side of the matrix are the tokens. "turned": columns, drawn as rows, so
// that hidden units are columns in all of the feedforward.
const MEANINGS = {
  G_PE: ["Gate", "Eq. 2: what each token adds to the depth", "rows"],
  G_R: ["Rank gate", "what each token adds to the rank", "rows"],
  G_K: ["Key gate", "what each token adds to the key", "rows"],
  G_N: ["Numeral gate", "1 on what numerals are made of, −1 on what ends them", "rows"],
  G_O: ["Operator gate", "which tokens each digit of a span is read with", "rows"],
  G_F: ["Fold gate", "which operators take their right operand digit by digit", "rows"],
  W_Q: ["Queries", "Eq. 11: who receives, by dimension of attention", "rows"],
  W_K: ["Keys", "Eq. 11: who is sent, by dimension of attention", "rows"],
  G_L: ["Levels", "of operators: as prefix ones, and below as binary ones", "columns"],
  directions: ["Directions", "by level, from 0: −1 from the left, 1 from the right", null],
  E: ["Vectors", "the dense vector of each token", "rows"],
  W_1: ["Feedforward, in", "Lemma 4: from what was received to hidden units", "rows"],
  b_1: ["Bias", "of each hidden unit", null],
  W_2: ["Feedforward, out", "transposed: from hidden units to outputs", "turned"],
  b_2: ["Bias", "of each output", "rows"],
  bags: ["Table: bags", "Lemma 4: each bag that can occur", "columns"],
  outputs: ["Table: outputs", "the token that each of them gives", "columns"],
};
const ROUTING = ["G_PE", "G_R", "G_K", "G_N", "G_O", "G_F", "W_Q", "W_K", "G_L", "directions", "E"];

/** Names for the rows or columns of a matrix: of tokens, slot by slot, and behind them of states. */
class Axes {
  constructor(vocabulary, states) {
    Object.assign(this, { vocabulary, states });
    this.longest = Math.max(vocabulary.longest, states ? `q${states - 1}`.length : 0);
  }

  /** How many slots so many entries are; null if they are something else. */
  slots(count) {
    const size = this.vocabulary.symbols.length;
    const slots = (count === size ? size : count - this.states) / size;
    return Number.isInteger(slots) && slots > 0 ? slots : null;
  }

  names(count) {
    const tokens = Array(this.slots(count)).fill(this.vocabulary.symbols).flat();
    return [...tokens, ...Array.from({ length: count - tokens.length }, (_, q) => `q${q}`)];
  }
}

function showWeights(data, vocabulary, tryExpression) {
  const axes = new Axes(vocabulary, data.states);
  const names = Object.keys(data.arrays).filter((name) => !name.endsWith("_logits"));
  const known = Object.keys(MEANINGS);
  names.sort((a, b) => ((known.indexOf(a) + 100) % 100) - ((known.indexOf(b) + 100) % 100));
  const small = (name) => isSmall(data.arrays[name]);
  const draw = (name) => matrix(name, data, axes);
  const routing = names.filter((name) => small(name) && ROUTING.includes(name));
  const others = names.filter((name) => small(name) && !ROUTING.includes(name));
  byId("view-weights").replaceChildren(
    html(
      "div",
      { class: "panes" },
      html(
        "section",
        { class: "panel matrices", "aria-label": "Weights" },
        html(
          "div",
          { class: "panel-head" },
          html("h2", {}, "Weights"),
          html("p", { class: "caption" }, summaryOf(data)),
        ),
        html("div", { class: "matrix-row" }, ...routing.map(draw)),
        ...names.filter((name) => !small(name)).map(draw),
        html("div", { class: "matrix-row" }, ...others.map(draw)),
        scaleKey(),
      ),
      html("aside", {}, certificate(data.certificate, tryExpression)),
    ),
  );
}

function isSmall({ shape }) {
  return (shape.length === 1 ? 1 : shape[1]) <= FEW && shape[0] <= FEW;
}

function summaryOf(data) {
  const units = {
    relu: "a perceptron of rectified units",
    square: "a perceptron of squared units",
  };
  const kind =
    units[data.activation] ?? ("bags" in data.arrays ? "a look-up table" : "made of gated units");
  return `${plural(data.parameters, "number")}; the feedforward is ${kind}.`;
}

/** A matrix with its meaning; beside a discrete one, the logits it was learned as. */
function matrix(name, data, axes) {
  const [title, caption] = MEANINGS[name] ?? [name, ""];
  const raw = data.arrays[`${name}_logits`];
  const array = data.arrays[name];
  const parts = raw
    ? [
        figure("discrete", array, name, axes),
        figure("raw logits", raw, name, axes, false),
      ]
    : [figure(null, array, name, axes)];
  return html(
    "article",
    { class: isSmall(array) ? "matrix small" : "matrix large" },
    html(
      "h3",
      {},
      title,
      " ",
      html("code", {}, name),
      html("span", { class: "shape" }, array.shape.join(" × ")),
    ),
    html("p", { class: "caption" }, caption),
    html("div", { class: "pair" }, ...parts),
  );
}

function figure(note, array, name, axes, withNames = true) {
  const side = MEANINGS[name]?.[2];
  const vector = array.shape.length === 1;
  const isDeep = array.shape.length === 3; // the digits of levels
  const rows = vector ? [array.numbers] : array.numbers.map((row) => (isDeep ? row.flat() : row));
  const upright = side === "turned" || (vector && side === "rows") ? transposed(rows) : rows;
  const picture = isSmall(array)
    ? entries(upright, withNames ? side : null, axes, name)
    : heatMap(upright.length > upright[0].length ? transposed(upright) : upright, axes);
  const [height, width] = array.shape.length === 1 ? [1, array.shape[0]] : array.shape;
  const cut = rows.length < height || rows[0].length < width;
  return html(
    "figure",
    {},
    note ? html("figcaption", {}, note) : null,
    ...picture,
    cut
      ? html(
          "figcaption",
          {},
          `the first ${rows.length.toLocaleString("en")} × ${rows[0].length.toLocaleString("en")} entries are drawn`,
        )
      : null,
  );
}

/** A number of two digits or so; the exact one is shown under the pointer. */
function entryText(number) {
  const size = Math.abs(number);
  const text = Number.isInteger(number)
    ? String(number)
    : number.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
  return text.replace("-", "−");
}

/** Entry by entry. Tokens name the rows, slot by slot where a bag has several, and then states. */
function entries(rows, side, axes, name) {
  const { vocabulary, longest } = axes;
  const named = ["rows", "turned"].includes(side) && axes.slots(rows.length) !== null;
  const headed = side === "columns" && axes.slots(rows[0].length) === 1;
  const most = Math.max(...rows.flat().map(Math.abs), 1e-30);
  const whole = rows.flat().every(Number.isInteger);
  const wide = whole && !headed ? CELL : whole ? Math.max(CELL, longest * 8 + 4) : 38;
  const top = headed ? CELL : 0;
  const left = named || name === "b_1" ? 12 + longest * 8 : 0; // b_1 stands under W_1
  const picture = svg("svg", {
    class: "entries",
    width: left + wide * rows[0].length + 2,
    height: top + CELL * rows.length + 2,
    role: "img",
    "aria-label": name,
  });
  if (headed) {
    axes.names(rows[0].length).forEach((token, j) =>
      picture.append(
        svg(
          "text",
          {
            class: `column-name ink-${vocabulary.kind(token)}`,
            x: left + (j + 0.5) * wide,
            y: CELL / 2,
            dy: "0.35em",
          },
          token,
        ),
      ),
    );
  }
  const names = named ? axes.names(rows.length) : [];
  rows.forEach((row, i) => {
    if (named) {
      const token = names[i];
      picture.append(
        svg(
          "text",
          {
            class: `row-name ink-${vocabulary.kind(token)}`,
            x: left - 7,
            y: i * CELL + CELL / 2 + 1,
            dy: "0.35em",
          },
          token,
        ),
      );
    }
    row.forEach((number, j) => {
      const cell = svg("g", { class: number === 0 ? "entry zero" : "entry" });
      const box = svg("rect", {
        x: left + j * wide + 1,
        y: top + i * CELL + 1,
        width: wide - 2,
        height: CELL - 2,
        rx: 3,
      });
      box.style.fill = tint(number / most);
      const text = svg(
        "text",
        { x: left + j * wide + wide / 2, y: top + i * CELL + CELL / 2, dy: "0.35em" },
        entryText(number),
      );
      if (strength(number / most) > 0.7) text.setAttribute("class", "on-dark");
      cell.append(svg("title", {}, String(number)), box, text);
      picture.append(cell);
    });
  });
  return [picture];
}

function transposed(rows) {
  return rows[0].map((_, j) => rows.map((row) => row[j]));
}

/** How strong a colour is: the root, since most weights are small beside the largest. */
function strength(part) {
  return Math.sqrt(Math.min(1, Math.abs(part)));
}

/** From the figures' colour for negative numbers, through the page's own, to that for positive. */
function tint(part) {
  const end = part < 0 ? "var(--negative)" : "var(--positive)";
  return `color-mix(in oklab, ${end} ${Math.round(100 * strength(part))}%, var(--page))`;
}

/** Too many entries for numbers: colours alone, one path for each of a few shades. */
function heatMap(rows, axes) {
  const most = rows.flat().reduce((a, b) => Math.max(a, Math.abs(b)), 1e-30);
  const shades = new Map();
  rows.forEach((row, i) =>
    row.forEach((number, j) => {
      const shade = Math.round(8 * Math.sign(number) * Math.sqrt(Math.abs(number) / most)) / 8;
      if (shade) shades.set(shade, `${shades.get(shade) ?? ""}M${j} ${i}h1v1h-1z`);
    }),
  );
  const picture = svg("svg", {
    class: "heat",
    viewBox: `0 0 ${rows[0].length} ${rows.length}`,
    preserveAspectRatio: "none",
    role: "img",
  });
  picture.style.height = `${Math.max(14, Math.min(12 * rows.length, 220))}px`;
  for (const [shade, path] of shades) {
    const cells = svg("path", { d: path });
    cells.style.fill = tint(shade * Math.abs(shade));
    picture.append(cells);
  }
  const { symbols } = axes.vocabulary;
  const slots = axes.slots(rows.length);
  const states = rows.length - slots * symbols.length;
  const order = [
    `rows from the top: ${symbols.join(" ")}`,
    ...(slots > 1 ? [`so for each of ${slots} slots`] : []),
    ...(states ? [`then ${plural(states, "state")}`] : []),
  ].join("; ");
  return [picture, slots === null ? null : html("figcaption", {}, order)];
}

function scaleKey() {
  return html(
    "p",
    { class: "scale-key" },
    html("span", { class: "ramp" }),
    " negative, zero, positive; each matrix has its own scale.",
  );
}

function certificate(proof, tryExpression) {
  const verdicts = {
    exact: "Proved right on every expression, of any depth and length.",
    inexact: "Wrong: there is an expression on which it fails.",
    undecided: "Not proved, and no expression was found on which it fails.",
    unfinished: `Not decided within ${proof.seconds} s; exactformer certify has no such limit.`,
  };
  return html(
    "section",
    { class: "panel certificate", "aria-label": "Certificate" },
    html(
      "div",
      { class: "panel-head" },
      html("h2", {}, "Certificate"),
      html("span", { class: `verdict ${proof.verdict}` }, proof.verdict),
    ),
    html("p", {}, verdicts[proof.verdict]),
    ...(proof.verdict === "unfinished" ? [] : findings(proof)),
    proof.counterexample ? counterexample(proof.counterexample, tryExpression) : null,
  );
}

function findings(proof) {
  const right = proof.rows - proof.wrong_rows;
  const numbers = [
    [`${proof.checked} right`, `${right.toLocaleString("en")} of ${proof.rows.toLocaleString("en")}`],
    ["smallest margin", shown(proof.in_decimals.smallest_margin)],
    ["rounding at most", shown(proof.in_decimals.rounding_bound)],
    ["weights", `sha256 ${proof.weights_sha256.slice(0, 16)}…`],
  ];
  return [
    html(
      "ul",
      { class: "conditions" },
      ...Object.entries(proof.conditions).map(([text, holds]) =>
        html("li", { class: holds ? "holds" : "fails" }, text),
      ),
    ),
    html(
      "dl",
      { class: "facts" },
      ...numbers.flatMap(([name, value]) => [html("dt", {}, name), html("dd", {}, value)]),
    ),
  ];
}

function counterexample({ expression, expected, found, shortest }, tryExpression) {
  const button = html(
    "button",
    { type: "button", disabled: tryExpression ? false : "" },
    "Watch it fail",
  );
  button.addEventListener("click", () => tryExpression(expression));
  return html(
    "div",
    { class: "counterexample" },
    html("h3", {}, shortest ? "Shortest counterexample" : "Counterexample"),
    html(
      "p",
      {},
      html("code", {}, expression),
      ` is ${expected}; the model leaves ${found ?? "no single value"}.`,
    ),
    tryExpression ? button : null,
  );
}
