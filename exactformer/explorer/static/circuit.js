// The tree of an expression, and where in a state the nodes that are left of it stand.

/** Nodes by position, with their inputs and places. Parentheses belong to the gate of their span.
 * `inPlace`: values are written where their operators were, and all parentheses are in the text. */
function circuitOf({ tokens, parenthesized }, vocabulary, inPlace) {
  const nodes = new Map();
  const belongs = new Map(); // position of any token to that of its node
  const open = [{ inputs: [], parts: [] }];
  const places = inPlace ? [...tokens.keys()] : placesInText(tokens, parenthesized, vocabulary);
  parenthesized.forEach((symbol, i) => {
    const position = places[i];
    if (symbol === "(") {
      open.push({ inputs: [], parts: [position], level: open.length });
    } else if (symbol === ")") {
      const span = open.pop();
      const gate = { position: span.gate, inputs: span.inputs, level: span.level - 1 };
      nodes.set(gate.position, gate);
      for (const part of [...span.parts, position]) {
        if (part !== null) belongs.set(part, gate.position);
      }
      open.at(-1).inputs.push(gate);
    } else if (vocabulary.kind(symbol) === "operator") {
      open.at(-1).gate = position;
    } else if (symbol !== EMPTY) {
      const leaf = { position, inputs: [], level: open.length - 1 };
      nodes.set(position, leaf);
      open.at(-1).inputs.push(leaf);
    } else {
      open.at(-1).parts.push(position);
    }
  });
  let leaves = 0;
  // A node is entered after its inputs, so their places are known.
  for (const node of nodes.values()) {
    const [one, other] = [node.inputs[0], node.inputs.at(-1)];
    node.x = one ? (one.x + other.x) / 2 : leaves++;
  }
  for (const node of nodes.values()) {
    for (const input of node.inputs) input.parent = node;
  }
  if (!inPlace) measure(nodes, belongs, tokens);
  const levels = Math.max(...[...nodes.values()].map((node) => node.level)) + 1;
  return { nodes, belongs, leaves, levels, symbols: inPlace ? null : tokens };
}

/** Where the tokens of a parenthesized text stand in the one that was read: parentheses, nowhere, and
 * operators behind their operands where that one is in reverse Polish notation. */
function placesInText(tokens, parenthesized, vocabulary) {
  const isParenthesis = (symbol) => symbol === "(" || symbol === ")";
  const isOperator = (symbol) => vocabulary.kind(symbol) === "operator";
  const own = [...tokens.keys()].filter((position) => !isParenthesis(tokens[position]));
  const places = parenthesized.map(() => null);
  const behind = []; // of each open span, the operator that is yet to come
  let next = 0;
  parenthesized.forEach((symbol, i) => {
    if (symbol === "(") {
      behind.push(null);
    } else if (symbol === ")") {
      const operator = behind.pop();
      if (operator !== null) places[operator] = own[next++];
    } else if (isOperator(symbol) && !isOperator(tokens[own[next]])) {
      behind[behind.length - 1] = i;
    } else if (symbol !== EMPTY) {
      places[i] = own[next++];
    }
  });
  return places;
}

/** From where to where each node reaches, the parentheses around it included. */
function measure(nodes, belongs, tokens) {
  const reach = () => {
    for (const node of nodes.values()) {
      const ends = [node, ...node.inputs].flatMap(({ from, to, position }) => [
        from ?? position,
        to ?? position,
      ]);
      [node.from, node.to] = [Math.min(...ends), Math.max(...ends)];
    }
  };
  reach();
  const open = [];
  tokens.forEach((symbol, position) => {
    if (symbol === "(") open.push(position);
    if (symbol !== ")") return;
    const from = open.pop();
    let node = nodes.get(belongs.get(from + 1) ?? from + 1);
    while (node.parent && from < node.parent.from && node.parent.to < position) node = node.parent;
    Object.assign(node, { from, to: position });
    belongs.set(from, node.position).set(position, node.position);
  });
  reach();
}

/** By node, the position of what is left of it in a state. A value that is not written in place, where
 * its operator was, is the first token in the span: a node is gone as soon as one above it is no
 * operator any more.
 */
function holdersOf({ nodes, symbols }, tokens) {
  const holders = new Map();
  const isFilled = (position) => tokens[position] !== EMPTY;
  if (!symbols) {
    for (const node of nodes.values()) if (isFilled(node.position)) holders.set(node, node.position);
    return holders;
  }
  const isReduced = ({ position, inputs }) =>
    inputs.length > 0 && tokens[position] !== symbols[position];
  for (const node of [...nodes.values()].reverse()) {
    const { parent } = node;
    if (parent && (!holders.has(parent) || isReduced(parent))) continue;
    let position = node.position;
    if (isReduced(node) || !isFilled(position)) {
      position = node.from;
      while (position < node.to && !isFilled(position)) position++;
    }
    if (isFilled(position)) holders.set(node, position);
  }
  return holders;
}
