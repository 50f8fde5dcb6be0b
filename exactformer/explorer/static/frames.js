// A trace as frames, one for each iteration and one for where it ends, and what follows from the
// numbers of an iteration alone.

const EMPTY = "·"; // the zero vector, as in the text of a trace

/** A step gets what it says, and the number of the cluster or span of each position. */
function framesOf(trace, picture) {
  const frames = trace.steps.map((step, i) => {
    Object.assign(step, { said: trace.said[i], groups: picture.groups(step) });
    return { tokens: step.tokens, step, picture };
  });
  const last = trace.steps.at(-1);
  return [...frames, { tokens: last ? last.state : trace.tokens, step: null, picture }];
}

const MOST_OF_A_NAME = 7; // characters in a small box

/** What the page knows of a vocabulary: the type of each token. */
class Vocabulary {
  constructor(symbols, kinds) {
    this.symbols = symbols;
    this.kinds = new Map(symbols.map((symbol, i) => [symbol, kinds[i]]));
    this.longest = Math.max(...symbols.map((symbol) => [...symbol].length));
  }

  kind(symbol) {
    if (symbol === EMPTY) return "empty";
    return this.kinds.get(symbol) ?? "plain"; // several tokens in one place, or a name
  }

  /** A symbol that fits a small box: several tokens in one place are counted, names cut. */
  brief(symbol) {
    if (this.kind(symbol) !== "plain") return symbol;
    const { length } = this.parts(symbol);
    return length > 1 ? `#${length}` : cut(symbol, MOST_OF_A_NAME);
  }

  /** What is told by token, in the order of the vocabulary: objects put digits before all else. */
  entries(byToken) {
    return this.symbols
      .filter((symbol) => symbol in byToken)
      .map((symbol) => [symbol, byToken[symbol]]);
  }

  /** The tokens in one place: wrong weights can leave several, written 1+0. */
  parts(symbol) {
    if (symbol === EMPTY) return [];
    if (this.kinds.has(symbol)) return [symbol];
    const first = this.symbols
      .filter((token) => symbol.startsWith(`${token}+`))
      .sort((a, b) => b.length - a.length)[0];
    return first === undefined ? [] : [first, ...this.parts(symbol.slice(first.length + 1))];
  }
}

/** Class of the colour of a cluster: they take turns. */
function clusterInk(number) {
  return `ink-cluster-${((number - 1) % clusterInk.count) + 1}`;
}
clusterInk.count = Number(
  getComputedStyle(document.documentElement).getPropertyValue("--clusters"),
);

/** Where each cluster is, or each piece of a span between holes; kept, since every redraw asks. */
function clustersOf(step) {
  step.runs ??= step.groups.reduce((runs, number, position) => {
    if (number && number === runs.at(-1)?.number) runs.at(-1).to = position;
    else if (number) runs.push({ number, from: position, to: position });
    return runs;
  }, []);
  return step.runs;
}

function clustersSummary(step) {
  const spans = plural(clustersOf(step).length, "deepest span");
  return `${spans} of ${plural(step.tokens.length, "position")}`;
}

/** Positions that received something or gave an output, in order. */
function busyPositions(step) {
  step.busy ??= Object.keys(step.routed)
    .map(Number)
    .sort((a, b) => a - b);
  return step.busy;
}

/** The bags of a position: one, or one for each slot where the order of operands matters. */
function bagsAt(step, position) {
  if (!(position in step.routed)) return [];
  return step.slots?.[position] ?? [step.routed[position]];
}

/** From where a position received what is in its bags: the places of those tokens in its span. */
function sendersTo(step, position, vocabulary) {
  const bags = bagsAt(step, position);
  const run = clustersOf(step)[step.clusters[position] - 1];
  const senders = [];
  for (let i = run.from; i <= run.to; i++) {
    const held = vocabulary.parts(step.tokens[i]);
    if (held.some((token) => bags.some((bag) => bag[token]))) senders.push(i);
  }
  return senders;
}

/** All the attention of an iteration, as far as it can be drawn. */
const MOST_ARCS = 3000;

function arcsOf(step, vocabulary) {
  if (!step.arcs) {
    step.arcs = [];
    step.arcsLeftOut = false;
    for (const to of busyPositions(step)) {
      if (step.arcs.length > MOST_ARCS) {
        step.arcsLeftOut = true;
        break;
      }
      for (const from of sendersTo(step, to, vocabulary)) step.arcs.push({ from, to });
    }
  }
  return step.arcs;
}
