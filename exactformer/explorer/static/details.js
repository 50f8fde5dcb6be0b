// One position in words and numbers.

function showDetails({ tokens, step, picture, waits }, place, vocabulary) {
  const still = waits ? `It waits for ${waits.join(", ")}.` : "The end: nothing more happens.";
  const head = html(
    "div",
    { class: "panel-head" },
    html("h2", {}, `Position ${place}`),
    chip(tokens[place], vocabulary),
    html(
      "p",
      { class: "caption" },
      step ? picture.role(step, place, vocabulary) : still,
    ),
  );
  byId("details").replaceChildren(head, ...(step ? picture.facts(step, place, vocabulary) : []));
}

function fact(name, ...content) {
  return [html("dt", {}, name), html("dd", {}, ...content)];
}

function chip(symbol, vocabulary, text = symbol === EMPTY ? "empty" : symbol) {
  return html("span", { class: `chip ink-${vocabulary.kind(symbol)}` }, text);
}

function roleOf(step, place, vocabulary) {
  if (!step.mask[place]) return "Outside the deepest spans: it stays as it is.";
  const receives = bagsAt(step, place).some((bag) => Object.keys(bag).length);
  const after = step.state[place];
  const becomes = after === EMPTY ? "becomes empty" : `becomes ${after}`;
  if (!receives) return `In cluster ${step.clusters[place]}: it receives nothing and ${becomes}.`;
  const senders = sendersTo(step, place, vocabulary).filter((i) => i !== place);
  const from =
    senders.length > 8 ? `${senders.length} positions` : senders.join(", ") || "itself alone";
  return `In cluster ${step.clusters[place]}: it receives from ${from} and ${becomes}.`;
}

function facts(step, place, vocabulary) {
  const bags = bagsAt(step, place);
  const list = html(
    "dl",
    { class: "facts" },
    ...fact(
      "counts",
      `${shown(step.forward[place])} from the left, ${shown(step.backward[place])} from the right`,
    ),
    ...bags.flatMap((bag, slot) =>
      fact(bags.length > 1 ? `slot ${slot + 1}` : "bag", ...bagChips(bag, vocabulary)),
    ),
  );
  const outputs = vocabulary.entries(step.outputs[place] ?? {});
  return outputs.length ? [list, outputTable(outputs, outputScale(step), vocabulary)] : [list];
}

function bagChips(bag, vocabulary) {
  const tokens = vocabulary.entries(bag);
  if (!tokens.length) return ["nothing"];
  return tokens.flatMap(([token, count]) => [
    chip(token, vocabulary, count === 1 ? token : `${count}×${token}`),
    " ",
  ]);
}

/** Each output as a bar from the threshold in the middle, and its number. */
function outputTable(outputs, scale, vocabulary) {
  const rows = outputs.map(([token, output]) => {
    const part = Math.min(1, Math.abs(scale(output))) * 48;
    const bar = svg(
      "svg",
      { viewBox: "-50 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", {
        class: output > 0 ? "above" : "below",
        x: output > 0 ? 0 : -part,
        width: Math.max(0.7, part),
        y: 1,
        height: 8,
      }),
      svg("line", { x1: 0, x2: 0, y1: -1, y2: 11 }),
    );
    return html(
      "tr",
      { class: `${output > 0 ? "kept " : ""}ink-${vocabulary.kind(token)}` },
      html("th", { scope: "row" }, token),
      html("td", { class: "bar" }, bar),
      html("td", { class: "number" }, shown(output)),
    );
  });
  return html(
    "table",
    { class: "outputs" },
    html("caption", {}, "Outputs against the threshold 0"),
    html("tbody", {}, ...rows),
  );
}
