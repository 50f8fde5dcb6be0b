// Steps of the logarithmic layer and of plain notation: what follows from the numbers of one alone.
// Its spans are values, maps from the value in their one hole, or wait for several.

const HOLE = "□"; // an inner span, as in the text of a trace
const UNKNOWN = "…"; // what depends on one

/** The spans in the order of their columns: an operator's own, or else that of the first token. */
function placedSpans(step, vocabulary) {
  if (!step.placed) {
    const own = new Map();
    step.numbers.forEach((number, column) => {
      const isOperator = vocabulary.kind(step.tokens[column]) === "operator";
      const found = own.get(number);
      if (!found || (isOperator && !found.isOperator)) own.set(number, { column, isOperator });
    });
    step.placed = step.spans
      .map((span) => ({ ...span, column: own.get(span.number).column }))
      .sort((a, b) => a.column - b.column);
  }
  return step.placed;
}

function spanAt(step, position) {
  return step.spans[step.numbers[position] - 1];
}

/** The value that comes into the one hole of a span; null while it is not known. */
function arriving(step, span) {
  return step.spans[span.inner[0] - 1].value;
}

function spansSummary(step) {
  const known = knownSpans(step).length;
  const waiting = step.spans.length - known;
  const all = `${plural(step.spans.length, "span")} of ${plural(step.tokens.length, "position")}`;
  return `${all}: ${known} with a value${waiting ? `, ${waiting} waiting` : ""}`;
}

function knownSpans(step) {
  return step.spans.filter((span) => span.value !== null);
}

/** What is handed from span to span, by column. */
function handedOn(step, vocabulary) {
  if (!step.handed) {
    const spans = placedSpans(step, vocabulary);
    const columns = new Map(spans.map(({ number, column }) => [number, column]));
    step.handed = spans.flatMap(({ inner, column, value }) =>
      inner.map((number) => ({
        from: columns.get(number),
        to: column,
        number,
        waits: value === null,
      })),
    );
  }
  return step.handed;
}

/** How deep each position is, by the parentheses that are counted there. */
function countedDepths(step) {
  let open = 0;
  return step.tokens.map((symbol, i) => {
    open += step.opened[i] + (symbol === "(" ? 1 : 0);
    const depth = open;
    open -= step.closed[i] + (symbol === ")" ? 1 : 0);
    return depth;
  });
}
