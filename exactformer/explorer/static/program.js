// A run as the page steps through it: statements with names, each with a trace of its own, and the
// wires between them. An expression is a run of one statement without a name.

const RUNS = {
  expression: (trace) => ({
    statements: [{ name: null, start: 0, end: trace.steps.length, tokens: trace.tokens, trace }],
    wires: [],
  }),
  program: ({ statements, traces, wires }) => ({
    statements: statements.map((said) => ({ ...said, trace: traces[said.trace] })),
    wires,
  }),
};

/** The kind of text that an answer is about. */
function kindOfText(answer) {
  return Object.keys(RUNS).find((kind) => kind in answer);
}

/** Each statement gets its layer's picture, and what it reads and who reads it, by number. */
function runOf(answer) {
  const { statements, wires } = RUNS[kindOfText(answer)](answer);
  for (const statement of statements) {
    const picture = PICTURES[statement.trace.layer] ?? SAID; // what it says, drawn as it is
    Object.assign(statement, { picture, from: [], to: [] });
  }
  for (const [from, to] of wires) {
    if (statements[to].from.includes(from)) continue;
    statements[to].from.push(from);
    statements[from].to.push(to);
  }
  const end = Math.max(...statements.map((statement) => statement.end));
  return { statements, end, named: statements[0].name !== null };
}

/** Frames of a statement by itself, from where it has the values of its names on. */
function ownFrames(statement) {
  statement.frames ??= framesOf(statement.trace, statement.picture);
  return statement.frames;
}

/** What a statement is after so many iterations. In the first of its own it has read its names. */
function frameOf({ statements }, statement, now) {
  const { tokens, picture, start, reads } = statement;
  if (now < start) {
    const missing = statement.from.map((i) => statements[i]).filter(({ end }) => end > now);
    return { tokens, step: null, picture, waits: missing.map(({ name }) => name) };
  }
  const frames = ownFrames(statement);
  const own = Math.min(now - start, frames.length - 1);
  return { ...frames[own], own, read: reads && now === start ? tokens : null };
}

/** The text that a statement has become after so many iterations. */
function textAt({ states, text, start, end, value }, now) {
  if (now >= end) return value;
  return now < start ? text : states[Math.min(now - start, states.length - 1)];
}

/** Statements that are at work in the iteration after so many. */
function working({ statements }, now) {
  return statements.filter(({ start, end }) => start <= now && now < end);
}

/** The statement to look at if none is selected: the first at work, or the first result. */
function leading(run, now) {
  return working(run, now)[0] ?? run.statements.find(({ to }) => !to.length);
}

function wiresSummary(run, now) {
  if (now === run.end) return `all ${plural(run.statements.length, "statement")} have their values`;
  const known = run.statements.filter(({ end }) => end <= now).length;
  const acting = working(run, now).length;
  const waiting = run.statements.length - known - acting;
  return [
    `${known} with a value`,
    `${acting} about to be computed`,
    ...(waiting ? [`${waiting} waiting`] : []),
  ].join(", ");
}
