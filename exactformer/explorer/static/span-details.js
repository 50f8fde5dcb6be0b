// One position of a step with spans, in words and numbers: above all, the span that it is in.

function spanRole(step, place) {
  const span = spanAt(step, place);
  if (!span) return "In no span: it stays as it is.";
  if (!step.mask[place]) return `In span ${span.number}, which waits: it stays as it is.`;
  const after = step.state[place];
  const becomes = after === EMPTY ? "becomes empty" : `becomes ${after}`;
  return `In span ${span.number}, which has a value: it ${becomes}.`;
}

function countFacts(step, place) {
  const [left, right] = [step.forward[place], step.backward[place]];
  return fact("counts", `${left} from the left, ${right} from the right`);
}

function levelFacts(step, place) {
  return [
    ...(step.levels[place] ? fact("level", String(step.levels[place])) : []),
    ...fact("counted", `${step.opened[place]} opened before, ${step.closed[place]} closed after`),
  ];
}

function heightFacts(step, place) {
  if (step.counts[place] === null) return [];
  const counted = `${step.counts[place]}, at the height ${step.heights[place]}`;
  return fact("counted", counted);
}

/** `about` gives the facts that a position has by itself. */
function spanFacts(about, step, place, vocabulary) {
  const known = about(step, place);
  const span = spanAt(step, place);
  if (!span) return [html("dl", { class: "facts" }, ...known)];
  const list = html(
    "dl",
    { class: "facts" },
    ...known,
    ...fact("span", html("code", {}, span.text), ` ${kindOf(span)}`),
    ...(span.fold?.length > 1 ? fact("in steps", html("code", {}, span.fold.join(", then "))) : []),
    ...span.inner.flatMap((number) =>
      fact(`span ${number}`, ...worth(step.spans[number - 1], vocabulary)),
    ),
    ...fact("is worth", ...worth(span, vocabulary)),
    ...(span.at === null ? [] : fact("written", `at position ${span.at}`)),
  );
  return span.map ? [list, mapTable(step, span, vocabulary)] : [list];
}

function kindOf(span) {
  if (!span.inner.length) return "has no hole";
  return span.map ? "is a map" : `has ${plural(span.inner.length, "hole")}`;
}

function worth(span, vocabulary) {
  return [span.value === null ? "not known yet" : chip(span.value, vocabulary)];
}

/** The map of a span, value by value; the one that comes stands out. */
function mapTable(step, span, vocabulary) {
  const comes = arriving(step, span);
  const rows = vocabulary.entries(span.map).map(([value, result]) =>
    html(
      "tr",
      { class: value === comes ? "comes" : undefined },
      html("th", { scope: "row" }, chip(value, vocabulary)),
      html("td", {}, "→"),
      html("td", {}, result === null ? "no value" : chip(result, vocabulary)),
      html("td", {}, value === comes ? "comes" : ""),
    ),
  );
  return html(
    "table",
    { class: "map" },
    html("caption", {}, `What it is worth, by the value of span ${span.inner[0]}`),
    html("tbody", {}, ...rows),
  );
}
