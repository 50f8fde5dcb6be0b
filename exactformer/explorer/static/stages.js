// The stages of one iteration, in the paper's order: what each is called, which equation it is, and
// which function of rows.js draws it.

const MOST_STATES = 16; // rows of the whole reduction

function stateStage(step) {
  return {
    name: "tokens",
    title: "State",
    equation: "X, Eq. 1",
    height: 46,
    caption: "in each place a token, or none",
    draw: (area) => boxes(area, step.tokens),
  };
}

const countsStage = {
  name: "counts",
  title: "Depth counts",
  equation: "A, Eqs. 2–4",
  height: 96,
  caption: "open parentheses, counted from the left (solid) and from the right (dashed)",
  draw: depthProfile,
};

function stagesOf(frames, index) {
  const { step } = frames[index];
  if (!step) return reductionStages(frames);
  return hasSpans(step) ? spanStages(step) : iterationStages(step);
}

function iterationStages(step) {
  return [
    stateStage(step),
    countsStage,
    {
      name: "mask",
      title: "Reduction mask",
      equation: "P, Eq. 5",
      height: 40,
      caption: "where the larger count is largest",
      draw: maskBits,
    },
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
    {
      name: "state",
      title: "New state",
      equation: "X′, Eq. 13",
      height: 46,
      caption: "spans become what was kept",
      draw: (area) => boxes(area, step.state, step.tokens),
    },
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

/** The logarithmic layer, and the one for plain notation. */
function spanStages(step) {
  return [
    stateStage(step),
    ...(step.levels ? plainStages(step) : [countsStage]),
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
      equation: step.levels ? "M′" : "F",
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
    {
      name: "mask",
      title: "Reduction mask",
      equation: "P",
      height: 40,
      caption: "outermost spans with a value",
      draw: maskBits,
    },
    {
      name: "state",
      title: "New state",
      equation: "X′",
      height: 46,
      caption: "these become their values",
      draw: (area) => boxes(area, step.state, step.tokens),
    },
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

/** Where it ends: all states below one another, as in the paper's Figure 3. */
function reductionStages(frames) {
  const last = frames.length - 1;
  const half = MOST_STATES / 2;
  const byPaper = frames.every(({ step }) => !step || !hasSpans(step)); // and its theorems
  const kept = [...frames.keys()].filter(
    (i) => frames.length <= MOST_STATES || i < half || i > last - half,
  );
  return kept.map((i) => ({
    name: "reduction",
    height: 42,
    title: i === 0 ? "At the start" : `After ${plural(i, "iteration")}`,
    equation: byPaper ? (i === last ? "Theorem 2" : i === 1 ? "Theorem 1" : "") : "",
    caption:
      frames.length > MOST_STATES && i === half - 1
        ? `${last - MOST_STATES + 1} more states are not shown`
        : "",
    draw: (area) => boxes(area, frames[i].tokens, i ? frames[i - 1].tokens : undefined),
  }));
}
