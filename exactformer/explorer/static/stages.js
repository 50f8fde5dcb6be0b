// The stages of one iteration, in the paper's order: what each is called, which equation it is, and
// which function of rows.js draws it.

const MOST_STATES = 16; // rows of the whole reduction

function stagesOf(frames, index) {
  const { step } = frames[index];
  return step ? iterationStages(step) : reductionStages(frames);
}

function iterationStages(step) {
  return [
    {
      name: "tokens",
      title: "State",
      equation: "X, Eq. 1",
      height: 46,
      caption: "a token in each place, or nothing",
      draw: (area) => boxes(area, step.tokens),
    },
    {
      name: "counts",
      title: "Depth counts",
      equation: "A, Eqs. 2–4",
      height: 96,
      caption: "open parentheses, counted from the left (solid) and from the right (dashed)",
      draw: depthProfile,
    },
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
    draw: ({ x, width, height, ...range }) =>
      columns(range)
        .filter((column) => step.mask[column] && width >= LEGIBLE)
        .map((column) =>
          label(String(step.ranks[column]), x(column) + width / 2, height / 2, width - 2, {
            class: "count",
          }),
        ),
  };
}

/** Where it ends: all states below one another, as in the paper's Figure 3. */
function reductionStages(frames) {
  const last = frames.length - 1;
  const half = MOST_STATES / 2;
  const kept = [...frames.keys()].filter(
    (i) => frames.length <= MOST_STATES || i < half || i > last - half,
  );
  return kept.map((i) => ({
    name: "reduction",
    height: 42,
    title: i === 0 ? "At the start" : `After ${plural(i, "iteration")}`,
    equation: i === last ? "Theorem 2" : i === 1 ? "Theorem 1" : "",
    caption:
      frames.length > MOST_STATES && i === half - 1
        ? `${last - MOST_STATES + 1} more states are not shown`
        : "",
    draw: (area) => boxes(area, frames[i].tokens, i ? frames[i - 1].tokens : undefined),
  }));
}
