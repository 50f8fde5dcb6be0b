// The stages of one iteration, in the paper's order: what each is called, which equation it is, and
// which function of rows.js draws it.

const MOST_STATES = 16; // rows of the whole reduction

function stagesOf(frames, index) {
  const { step } = frames[index];
  if (!step) return reductionStages(frames);
  return isPlain(step) ? plainStages(step) : iterationStages(step);
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

/** Of plain notation, which is beyond the paper: parentheses that are left out are counted. */
function plainStages(step) {
  const ends = (i) => [step.opened[i] && `${step.opened[i]}(`, step.closed[i] && `${step.closed[i]})`];
  return [
    {
      name: "tokens",
      title: "State",
      height: 46,
      caption: "a token in each place",
      draw: (area) => boxes(area, step.tokens),
    },
    {
      name: "levels",
      title: "Levels",
      height: 40,
      caption: "how tightly an operator binds",
      draw: (area) => numbers(area, (i) => step.levels[i] || ""),
    },
    {
      name: "counted",
      title: "Counted",
      height: 40,
      caption: "parentheses not written",
      draw: (area) => numbers(area, (i) => ends(i).filter(Boolean).join(" ")),
    },
    {
      name: "clusters",
      title: "Spans",
      height: 42,
      caption: "operators of one level",
      draw: clusterBands,
    },
    {
      name: "maps",
      title: "Worth",
      height: 40,
      caption: "→ its value; □ if it waits",
      draw: (area) => numbers(area, (i) => worth(step, i)),
    },
    {
      name: "mask",
      title: "Mask",
      height: 40,
      caption: "in spans that have a value",
      draw: maskBits,
    },
    {
      name: "state",
      title: "New state",
      height: 46,
      caption: "spans become their value",
      draw: (area) => boxes(area, step.state, step.tokens),
    },
  ];
}

/** What is said at the first position of spans that wait, and of those that are written there. */
function worth(step, position) {
  const waits = ({ start, value }) => start === position && value === null;
  const written = step.spans.find(({ at }) => at === position);
  return (step.spans.some(waits) ? "□" : "") + (written ? `→${written.value}` : "");
}

/** Only where the order of operands matters, which is beyond the paper. */
function rankStage(step) {
  return {
    name: "ranks",
    title: "Ranks",
    equation: "R",
    height: 40,
    caption: "which operand of its span it is",
    draw: (area) => numbers(area, (i) => (step.mask[i] ? step.ranks[i] : "")),
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
