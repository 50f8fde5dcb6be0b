// The stages of one iteration, in the paper's order: what each is called, which equation it is, and
// which function of rows.js draws it.

const MOST_STATES = 16; // rows of the whole reduction

const stateStage = {
  name: "tokens",
  title: "State",
  equation: "X, Eq. 1",
  height: 46,
  caption: "in each place a token, or none",
  draw: (area) => boxes(area, area.step.tokens),
};

const newStateStage = {
  name: "state",
  title: "New state",
  height: 46,
  draw: (area) => boxes(area, area.step.state, area.step.tokens),
};

const maskStage = { name: "mask", title: "Reduction mask", height: 40, draw: maskBits };

const countsStage = {
  name: "counts",
  title: "Depth counts",
  equation: "A, Eqs. 2–4",
  height: 96,
  caption: "open parentheses, counted from the left (solid) and from the right (dashed)",
  draw: depthProfile,
};

/** The rows of a frame; `frames` are all those of its trace. */
function stagesOf({ step, picture, waits, read, tokens }, frames) {
  if (waits) return [waitingStage];
  const stages = step ? picture.stages(step) : reductionStages(frames, picture);
  return read ? [wiresStage(read, tokens), ...stages] : stages;
}

const waitingStage = {
  name: "waiting",
  title: "Statement",
  height: 46,
  caption: "names stand where values will",
  draw: (area) => boxes(area, area.frame.tokens),
};

/** The names whose values have come, over these. */
function wiresStage(names, tokens) {
  const read = names.map((name, i) => (name === tokens[i] ? EMPTY : name));
  return {
    name: "wires",
    title: "Wires",
    height: 46,
    caption: "a value for each name",
    draw: (area) => boxes(area, read),
  };
}

function iterationStages(step) {
  return [
    stateStage,
    countsStage,
    { ...maskStage, equation: "P, Eq. 5", caption: "where the larger count is largest" },
    {
      name: "clusters",
      title: "Clusters",
      equation: "id, Eqs. 6–9",
      height: 42,
      caption: "each run of ones is one span",
      draw: clusterBands,
    },
    ...(step.ranks ? [rankStage(step)] : []),
    {
      name: "attention",
      title: "Attention",
      equation: "QKᵀ, Eqs. 10–11",
      height: 66,
      caption: "who receives from whom in a span: operators, their operands",
      draw: attentionArcs,
    },
    {
      name: "bag",
      title: "Routed bag",
      equation: "H, Eq. 12",
      height: bagHeight(step),
      caption: "what was received",
      draw: routedBags,
    },
    {
      name: "outputs",
      title: "Feedforward",
      equation: "Z, Lemma 4",
      height: 92,
      caption: "one output for each token (log scale); what exceeds the threshold is kept",
      draw: outputBars,
    },
    { ...newStateStage, equation: "X′, Eq. 13", caption: "spans become what was kept" },
  ];
}

/** Only where the order of operands matters, which is beyond the paper. */
function rankStage(step) {
  return {
    name: "ranks",
    title: "Ranks",
    equation: "R",
    height: 40,
    caption: "which operand of its span it is",
    draw: (area) => numbers(area, step.ranks, step.mask),
  };
}

/** The logarithmic layer, and those for plain and Polish notation. `reasons`: why spans are where they are;
 * `maps`: the symbol of a span's map. */
function spanStages(step, reasons, maps) {
  return [
    stateStage,
    ...reasons,
    {
      name: "spans",
      title: "Spans",
      equation: "id",
      height: 42,
      caption: `one within another is a hole, ${HOLE}`,
      draw: clusterBands,
    },
    {
      name: "maps",
      title: "Speculate",
      equation: maps,
      height: mapHeight(step),
      caption: "every value tried in the one hole; in bold, the one that comes",
      draw: mapTables,
    },
    {
      name: "scan",
      title: "Scan",
      equation: "",
      height: 60,
      caption: "values are handed on; dashed, to a span that still waits",
      draw: scanArcs,
    },
    {
      name: "values",
      title: "Values",
      equation: "u",
      height: 46,
      caption: `what each span is worth, or ${UNKNOWN}`,
      draw: spanValues,
    },
    { ...maskStage, equation: "P", caption: "outermost spans with a value" },
    { ...newStateStage, equation: "X′", caption: "these become their values" },
  ];
}

/** In plain notation: why parentheses that nobody wrote are where they are. */
function plainStages(step) {
  return [
    {
      name: "levels",
      title: "Levels",
      equation: "G_L",
      height: 40,
      caption: "of operators: higher is tighter",
      draw: (area) => numbers(area, step.levels),
    },
    {
      name: "parentheses",
      title: "Parentheses",
      equation: "",
      height: 56,
      caption: "counted, not written: before a token, and after it",
      draw: countedParentheses,
    },
  ];
}

/** In Polish notation: why spans are where they are, without a parenthesis. */
function polishStages(step) {
  const read = step.counts.map((count) => count !== null);
  return [
    {
      name: "counts",
      title: "Operands less one",
      equation: "g",
      height: 40,
      caption: "by the arity gate: -1 for a value",
      draw: (area) => numbers(area, step.counts.map((count) => count ?? ""), read),
    },
    {
      name: "heights",
      title: "Heights",
      equation: "h",
      height: 40,
      caption: "sum of the counts read before: an operator's last operand has its own",
      draw: (area) => numbers(area, step.heights.map((height) => height ?? ""), read),
    },
  ];
}

/** Where it ends: all states below one another, as in the paper's Figure 3. */
function reductionStages(frames, { theorems }) {
  const last = frames.length - 1;
  const half = MOST_STATES / 2;
  const kept = [...frames.keys()].filter(
    (i) => frames.length <= MOST_STATES || i < half || i > last - half,
  );
  return kept.map((i) => ({
    name: "reduction",
    height: 42,
    title: i === 0 ? "At the start" : `After ${plural(i, "iteration")}`,
    equation: theorems ? (i === last ? "Theorem 2" : i === 1 ? "Theorem 1" : "") : "",
    caption:
      frames.length > MOST_STATES && i === half - 1
        ? `${last - MOST_STATES + 1} more states are not shown`
        : "",
    draw: (area) => boxes(area, frames[i].tokens, i ? frames[i - 1].tokens : undefined),
  }));
}
