// What the page draws of each layer, by its name; no other file asks which layer there is. A layer
// that is not here is drawn from what its steps say (said.js), in the same terms:
//
// groups    of each position, the number of its cluster or span, or 0
// depths    of each position, for the sheet in small
// stages    the rows of the sheet
// acting    the columns to look at first
// summary   the iteration in words; reducing: what the circuit loses in it
// role      one position in words; facts: in numbers
// events    sentences below the rows, if there are any
// halts     why it ends
// several   the legend of several tokens in one place
// inPlace   whether a value is written where its operator was
// theorems  whether those of the paper are about it

const SEVERAL = "#2: two tokens in one place, which is wrong";

const BY_COUNTS = {
  several: SEVERAL,
  depths: (step) => step.forward.map((count, i) => Math.max(count, step.backward[i])),
  halts: "No parenthesis is left, so it halts",
  inPlace: true,
};

const BY_SPANS = {
  several: SEVERAL,
  groups: (step) => step.numbers,
  acting: (step, vocabulary) =>
    placedSpans(step, vocabulary)
      .map(({ column }) => column)
      .filter((column) => step.mask[column]),
  summary: spansSummary,
  reducing: (step) => plural(knownSpans(step).length, "span"),
  role: spanRole,
};

const PICTURES = {
  depth: {
    ...BY_COUNTS,
    groups: (step) => step.clusters,
    stages: iterationStages,
    acting: busyPositions,
    summary: clustersSummary,
    reducing: (step) => plural(clustersOf(step).length, "gate"),
    role: roleOf,
    facts,
    theorems: true,
  },
  log: {
    ...BY_COUNTS,
    ...BY_SPANS,
    stages: (step) => spanStages(step, [countsStage], "F"),
    facts: (...asked) => spanFacts(countFacts, ...asked),
  },
  plain: {
    ...BY_SPANS,
    depths: countedDepths,
    stages: (step) => spanStages(step, plainStages(step), "M′"),
    facts: (...asked) => spanFacts(levelFacts, ...asked),
    halts: "No operator is left, so it halts",
  },
  polish: {
    ...BY_SPANS,
    depths: (step) => step.heights.map((height) => height ?? 0),
    stages: (step) => spanStages(step, polishStages(step), "F"),
    facts: (...asked) => spanFacts(heightFacts, ...asked),
    halts: "No operator is left, so it halts",
  },
};
