// How the rows are drawn that only steps with spans have; as in rows.js.

const LINE = 15; // height of a line of a map
const MOST_LINES = 12; // of a map in its column; the panel beside it has all of them

/** The spans that are drawn between two columns, each with the middle of its place and its room. */
function visibleSpans({ step, x, width, vocabulary, from, to }) {
  const spans = placedSpans(step, vocabulary);
  return spans.flatMap((span, i) => {
    if (span.column < from || to < span.column) return [];
    const free = Math.min(
      span.column - (spans[i - 1]?.column ?? -Infinity),
      (spans[i + 1]?.column ?? Infinity) - span.column,
    );
    return { span, middle: x(span.column) + width / 2, room: Math.min(2, free) * width - 4 };
  });
}

/** A number in each column that has one, or in those of a mask. */
function numbers({ x, width, height, ...range }, counts, mask = counts) {
  return columns(range)
    .filter((column) => mask[column] && width >= LEGIBLE)
    .map((column) =>
      label(String(counts[column]), x(column) + width / 2, height / 2, width - 2, {
        class: "count",
      }),
    );
}

/** Parentheses that nobody wrote: those before a token above, those after it below. */
function countedParentheses({ step, x, width, height, ...range }) {
  const text = (symbol, count) => (count > 3 ? `${count}${symbol}` : symbol.repeat(count));
  const lines = [
    ["opened", "(", step.opened, height * 0.32],
    ["closed", ")", step.closed, height * 0.68],
  ];
  return columns(range).flatMap((column) =>
    lines
      .filter(([, , counts]) => counts[column] && width >= LEGIBLE)
      .map(([name, symbol, counts, y]) =>
        label(text(symbol, counts[column]), x(column) + width / 2, y, width - 2, {
          class: `counted ${name} ink-parenthesis`,
        }),
      ),
  );
}

function mapHeight(step) {
  step.lines ??= extreme(
    step.spans.map(({ map }) => (map ? Object.keys(map).length : 1)),
    Math.max,
    1,
  );
  return Math.max(70, 14 + LINE * Math.min(step.lines, MOST_LINES));
}

/** Under each span: its map, line by line; its value if it has no hole; or how many holes it has. */
function mapTables(area) {
  const { step, width, vocabulary } = area;
  if (width < LEGIBLE) return [];
  return visibleSpans(area).flatMap(({ span, middle, room }) => {
    const y = (line) => 7 + LINE * (line + 0.5);
    if (!span.inner.length) {
      const value = span.value ?? UNKNOWN;
      return tokenBox(value, "value", middle, y(0.2), width - 6, CHIP, "chip");
    }
    if (!span.map) return note(`${span.inner.length} ${HOLE}`, middle, y(0.4));
    const lines = vocabulary.entries(span.map);
    const fits = lines.length <= MOST_LINES ? lines : lines.slice(0, MOST_LINES - 1);
    const comes = arriving(step, span);
    const drawn = fits.map(([value, result], i) =>
      label(`${value}→${result ?? UNKNOWN}`, middle, y(i), room, {
        class: value === comes ? "pair comes" : "pair",
      }),
    );
    if (fits.length < lines.length) {
      drawn.push(note(`+${lines.length - fits.length}`, middle, y(fits.length) + 4));
    }
    return drawn;
  });
}

/** From each inner span down to the one around it; dashed where that one goes on waiting. */
function scanArcs(area) {
  return visibleArcs(handedOn(area.step, area.vocabulary), area).flatMap((arc) => {
    const ink = clusterInk(arc.number);
    return [arrow(area, arc, arc.waits ? `${ink} waits` : ink), arrowHead(area, arc.to, ink)];
  });
}

/** What each span is worth, or that it waits. */
function spanValues(area) {
  const { width, height } = area;
  return visibleSpans(area).map(({ span, middle }) => {
    const [text, kind] = span.value === null ? [UNKNOWN, "plain"] : [span.value, "value"];
    const wide = width - Math.min(4, width / 4);
    return tokenBox(text, kind, middle, height / 2, wide, BOX, "token");
  });
}
