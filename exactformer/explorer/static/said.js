// A layer without a picture of its own, from what its steps say: a row of the sheet for each of
// their rows, and their events below. The terms are those of pictures.js.

const SAID = {
  groups: () => [],
  depths: () => [],
  stages: saidStages,
  acting: changedPositions,
  summary: (step) => plural(step.tokens.length, "position"),
  reducing: (step) => plural(changedPositions(step).length, "change"),
  role: changeAt,
  facts: (step, place) => [
    html(
      "dl",
      { class: "facts" },
      ...Object.entries(step.said.rows).flatMap(([name, cells]) => fact(name, cells[place])),
    ),
  ],
  events: (step) => step.said.events,
  halts: "It halts",
  several: "#2: two tokens in one place",
};

function changedPositions({ tokens, state }) {
  return [...tokens.keys()].filter((i) => state[i] !== tokens[i]);
}

function changeAt({ tokens, state }, place) {
  if (state[place] === tokens[place]) return "It stays as it is.";
  return state[place] === EMPTY ? "It becomes empty." : `It becomes ${state[place]}.`;
}

function saidStages({ said }) {
  return Object.entries(said.rows).map(([title, cells]) => ({
    name: "said",
    title,
    height: 42,
    draw: (area) => saidCells(area, cells),
  }));
}

/** Tokens in boxes; numbers, and other words, as they are. */
function saidCells({ x, width, height, vocabulary, ...range }, cells) {
  return columns(range).map((column) => {
    const [cell, middle] = [cells[column], x(column) + width / 2];
    const kind = vocabulary.kind(cell);
    if (kind !== "plain")
      return tokenBox(cell, kind, middle, height / 2, width - Math.min(4, width / 4), BOX, "token");
    const text = width < LEGIBLE ? "" : String(cell);
    return label(text, middle, height / 2, width - 2, { class: "count" });
  });
}

/** Under the rows, for a picture that has events. */
function showEvents({ step, picture }) {
  const events = (step && picture.events?.(step)) ?? [];
  byId("events").replaceChildren(...events.map((event) => html("li", {}, event)));
}
