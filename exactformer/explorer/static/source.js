// Where the data comes from: the server of this page, or the page itself if it is a file that
// `exactformer trace --html` wrote.

const EMBEDDED = JSON.parse(byId("embedded").textContent);

/** What the server refused, with the place in the text where there is one. */
class Refusal extends Error {
  constructor(answer) {
    super(answer.error);
    this.offset = answer.offset;
  }
}

async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal({
      error: "the server does not answer: is exactformer explore still running?",
    });
  }
  const answer = await response.json();
  if (!response.ok) throw new Refusal(answer);
  return answer;
}

const server = {
  models: () => ask("/api/models"),
  trace: ({ algebra, weights, kind, text, iterations }, signal) =>
    ask("/api/trace", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ algebra, weights, [kind]: text, iterations }),
      signal,
    }),
  weights: (algebra, weights) => ask(`/api/weights?${new URLSearchParams({ algebra, weights })}`),
  sample: (asked) => ask(`/api/sample?${new URLSearchParams(asked)}`),
};

const file = {
  models: async () => EMBEDDED.models,
  trace: async () => EMBEDDED.trace,
  weights: async () => EMBEDDED.weights,
};

const source = EMBEDDED ? file : server;
