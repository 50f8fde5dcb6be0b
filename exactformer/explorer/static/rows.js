// How each row of the sheet is drawn. A function gets {step, from, to, x, width, height, vocabulary},
// where x(column) is a column's left edge, and returns SVG elements for the columns from..to.

const BOX = 26; // height of a token's box
const CHIP = 18; // height of a token in a bag
const MOST_CHIPS = 7; // in one column; what is left out is counted
const LEGIBLE = 16; // pixels of a column from which its text can be read

function columns({ from, to }) {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}

/** A box for each token; those that differ from `before` stand out. */
function boxes({ x, width, height, vocabulary, ...range }, tokens, before = tokens) {
  const top = (height - BOX) / 2;
  return columns(range).map((column) => {
    const symbol = tokens[column];
    const kind = vocabulary.kind(symbol);
    const fresh = symbol !== before[column] && kind !== "empty" ? " fresh" : "";
    return tokenBox(
      vocabulary.brief(symbol),
      kind,
      x(column) + width / 2,
      top + BOX / 2,
      width - Math.min(4, width / 4),
      BOX,
      `token${fresh}`,
    );
  });
}

function tokenBox(symbol, kind, x, y, width, height, name) {
  const box = svg("g", { class: `${name} ink-${kind}` });
  if (kind === "empty") {
    box.append(svg("circle", { cx: x, cy: y, r: Math.min(2, width / 4) }));
    return box;
  }
  box.append(
    svg("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: Math.min(5, width / 4) }),
  );
  if (width >= LEGIBLE - 4) box.append(label(symbol, x, y, width - 4));
  return box;
}

/** Text in the middle of a place, squeezed if it is wider. */
function label(text, x, y, room, attributes = {}) {
  const squeezed = [...text].length * 8 > room && [...text].length > 1;
  return svg(
    "text",
    {
      x,
      y,
      dy: "0.35em",
      ...(squeezed && { textLength: room, lengthAdjust: "spacingAndGlyphs" }),
      ...attributes,
    },
    text,
  );
}

/** Text at a place, as wide as it is. */
function note(text, x, y, name = "note middle") {
  return svg("text", { class: name, x, y }, text);
}

/** Two step lines over a tint of the larger count, and the numbers where there is room. */
function depthProfile({ step, x, width, ...range }) {
  step.most ??= extreme([...step.forward, ...step.backward], Math.max, 1);
  step.least ??= extreme([...step.forward, ...step.backward], Math.min, 0);
  const [top, bottom] = [10, 58];
  const y = (count) => bottom - ((bottom - top) * (count - step.least)) / (step.most - step.least);
  const places = columns(range);
  const line = (counts) =>
    places.map((i, first) => `${first ? "L" : "M"}${x(i)} ${y(counts(i))}H${x(i + 1)}`).join("");
  const larger = (i) => Math.max(step.forward[i], step.backward[i]);
  const elements = [
    svg("path", { class: "larger", d: `${line(larger)}V${y(0)}H${x(places[0])}Z` }),
    svg("line", {
      class: "ground",
      x1: x(places[0]),
      x2: x(places.at(-1) + 1),
      y1: y(0),
      y2: y(0),
    }),
    svg("path", { class: "backward", d: line((i) => step.backward[i]) }),
    svg("path", { class: "forward", d: line((i) => step.forward[i]) }),
  ];
  if (width < LEGIBLE) return elements;
  for (const i of places) {
    const count = (name, y) =>
      label(String(step[name][i]), x(i) + width / 2, y, width - 2, { class: `count ${name}-count` });
    elements.push(count("forward", 71), count("backward", 86));
  }
  return elements;
}

function extreme(numbers, better, start) {
  return numbers.reduce((a, b) => better(a, b), start);
}

function maskBits({ step, x, width, height, ...range }) {
  return columns(range).map((column) => {
    const bit = step.mask[column];
    const cell = svg("g", { class: bit ? "bit ink-marked" : "bit ink-empty off" });
    const size = Math.min(22, width - 2);
    cell.append(
      svg("rect", {
        x: x(column) + (width - size) / 2,
        y: (height - 22) / 2,
        width: size,
        height: 22,
        rx: Math.min(4, size / 4),
      }),
    );
    if (width >= LEGIBLE) cell.append(label(String(bit), x(column) + width / 2, height / 2, size));
    return cell;
  });
}

function clusterBands({ step, x, width, height, ...range }) {
  return visibleRuns(step, range).map(({ number, from, to, whole }) => {
    const left = x(from) + (from === whole.from ? 2 : -4);
    const right = x(to + 1) + (to === whole.to ? -2 : 4);
    return svg(
      "g",
      { class: `cluster ${clusterInk(number)}` },
      svg("rect", {
        x: left,
        width: Math.max(1, right - left),
        y: (height - 22) / 2,
        height: 22,
        rx: 6,
      }),
      ...clusterNumbers(whole, { from, to }).map((column) =>
        width * (to - from + 1) < 14
          ? null
          : label(String(number), x(column) + width / 2, height / 2, right - left),
      ),
    );
  });
}

/** Where a cluster's number stands: in its middle, or again and again where that may be far away. */
function clusterNumbers(whole, { from, to }) {
  if (whole.to - whole.from < 24)
    return [(whole.from + whole.to) / 2].filter((column) => from <= column && column <= to);
  return columns({ from, to }).filter((column) => (column - whole.from) % 12 === 6);
}

/** An arc from one column down to another. */
function arrow({ x, width, height }, arc, name) {
  const [start, end] = [x(arc.from) + width / 2, x(arc.to) + width / 2];
  return svg("path", {
    class: `arc ${name}`,
    "data-from": arc.from,
    "data-to": arc.to,
    d: `M${start} 4C${start} ${height * 0.62} ${end} ${height * 0.3} ${end} ${height - 9}`,
  });
}

function arrowHead({ x, width, height }, column, ink) {
  const d = `M${x(column) + width / 2 - 4.5} ${height - 11}h9l-4.5 8z`;
  return svg("path", { class: `head ${ink}`, d });
}

/** The arcs with a part between two columns. */
function visibleArcs(arcs, { from, to }) {
  const isSeen = (arc) => Math.min(arc.from, arc.to) <= to && from <= Math.max(arc.from, arc.to);
  return arcs.filter(isSeen);
}

/** From the column of each token that is sent, down to the column that receives it. */
function attentionArcs(area) {
  const { step, x, height, vocabulary, from, to } = area;
  const inkOf = (column) => clusterInk(step.clusters[column]);
  const visible = visibleArcs(arcsOf(step, vocabulary), area);
  const arcs = visible.map((arc) => arrow(area, arc, inkOf(arc.to)));
  const heads = busyPositions(step)
    .filter((i) => from <= i && i <= to && bagsAt(step, i).some((bag) => Object.keys(bag).length))
    .map((i) => arrowHead(area, i, inkOf(i)));
  if (step.arcsLeftOut) {
    const most = `only the first ${plural(MOST_ARCS, "arc")} are drawn`;
    arcs.push(note(most, x(from) + 4, height - 6, "note"));
  }
  return [...arcs, ...heads];
}

/** The chips of a position, from top to bottom: tokens with their counts, slot by slot. */
function chipsAt(step, position, vocabulary) {
  const bags = bagsAt(step, position);
  return bags.flatMap((bag, slot) =>
    vocabulary.entries(bag).map(([token, count], i) => ({
      token,
      count,
      slot: bags.length > 1 && i === 0 ? slot + 1 : null,
    })),
  );
}

function chipCount(step, position) {
  return bagsAt(step, position).reduce((count, bag) => count + Object.keys(bag).length, 0);
}

function bagHeight(step) {
  step.tallest ??= extreme(
    busyPositions(step).map((i) => chipCount(step, i)),
    Math.max,
    1,
  );
  return Math.max(44, 14 + (CHIP + 3) * Math.min(step.tallest, MOST_CHIPS));
}

function routedBags({ step, x, width, vocabulary, from, to }) {
  return busyPositions(step)
    .filter((i) => from <= i && i <= to)
    .flatMap((position) => {
      const chips = chipsAt(step, position, vocabulary);
      const fits = chips.length <= MOST_CHIPS ? chips : chips.slice(0, MOST_CHIPS - 1);
      const middle = x(position) + width / 2;
      const drawn = fits.map(({ token, count, slot }, row) => {
        const y = 8 + (CHIP + 3) * row + CHIP / 2;
        const text = count === 1 ? token : `${count}×${token}`;
        const chip = tokenBox(text, vocabulary.kind(token), middle, y, width - 6, CHIP, "chip");
        if (slot && width >= LEGIBLE)
          chip.append(note(String(slot), middle - width / 2 - 3, y + 3, "slot"));
        return chip;
      });
      if (fits.length < chips.length) {
        const y = 12 + (CHIP + 3) * fits.length + CHIP / 2;
        drawn.push(note(`+${chips.length - fits.length}`, middle, y));
      }
      return drawn;
    });
}

/** How far from the threshold, from -1 to 1: logarithmic, since margins differ by powers of ten. */
function outputScale(step) {
  if (!step.scale) {
    const sizes = busyPositions(step)
      .flatMap((i) => Object.values(step.outputs[i] ?? {}))
      .map(Math.abs)
      .filter((size) => size > 0);
    const least = extreme(sizes, Math.min, Infinity);
    const most = Math.log1p(extreme(sizes, Math.max, 0) / least) || 1;
    step.scale = (output) => (Math.sign(output) * Math.log1p(Math.abs(output) / least)) / most;
  }
  return step.scale;
}

/** A small bar chart under each busy position, as wide as its neighbours leave room. */
function outputBars({ step, x, width, height, vocabulary, from, to }) {
  const middle = height * 0.5,
    reach = height * 0.5 - 20;
  const scale = outputScale(step);
  const elements = [
    svg("line", { class: "threshold", x1: x(from), x2: x(to + 1), y1: middle, y2: middle }),
  ];
  const busy = busyPositions(step);
  const crowded = (outputs, bar) =>
    bar < 9 && outputs.filter(([, output]) => output > 0).length > 1;
  busy.forEach((position, order) => {
    if (position < from || to < position) return;
    const free = Math.min(
      position - (busy[order - 1] ?? -Infinity),
      (busy[order + 1] ?? Infinity) - position,
    );
    const room = Math.min(2.6, free) * width - 4;
    const outputs = vocabulary.entries(step.outputs[position] ?? {});
    const bar = room / outputs.length;
    const left = x(position) + width / 2 - room / 2;
    outputs.forEach(([token, output], i) => {
      const size = Math.max(1, Math.abs(scale(output)) * reach);
      const above = output > 0;
      elements.push(
        svg("rect", {
          class: `bar ${above ? "above" : "below"} ink-${vocabulary.kind(token)}`,
          x: left + i * bar + bar * 0.1,
          width: bar * 0.8,
          y: above ? middle - size : middle,
          height: size,
        }),
      );
      if (above && width >= LEGIBLE && !crowded(outputs, bar)) {
        const name = `kept ink-${vocabulary.kind(token)}`;
        elements.push(note(token, left + (i + 0.5) * bar, middle - size - 5, name));
      }
    });
  });
  return elements;
}
