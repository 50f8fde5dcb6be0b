// The circuit: the tree of the expression, in the place it had from the start. What an iteration
// reduces becomes a shadow, so the circuit shrinks and its shape stays to be seen.

const LEAF = 30; // pixels from one operand to the next, at least
const LEVEL = 46; // from a gate to its inputs
const NODE = 24; // size of a node
const ZOOMS = [0.1, 0.18, 0.3, 0.5, 0.7, 1, 1.4];
const READABLE = 0.45; // below this zoom a node is a dot
const AROUND = 60; // pixels drawn beyond the edges

/** Pixels of a node for a symbol of so many characters. */
function wideEnough(characters) {
  return Math.max(NODE, characters * 8.2 + 8);
}

class Tree {
  constructor(events) {
    this.box = byId("tree");
    this.canvas = svg("svg", { role: "img", "aria-label": "The circuit" });
    this.box.append(this.canvas);
    this.marks = svg("g", { class: "marks" });
    this.lit = { hovered: null, pinned: null };
    this.box.addEventListener(
      "scroll",
      oncePerFrame(() => this.draw()),
      { passive: true },
    );
    new ResizeObserver(() => this.lay()).observe(this.box);
    const nodeAt = (event) => {
      const position = event.target.closest("[data-position]")?.dataset.position;
      return position === undefined ? null : Number(position);
    };
    this.canvas.addEventListener("pointerover", (event) => events.hover(nodeAt(event)));
    this.canvas.addEventListener("pointerleave", () => events.hover(null));
    this.canvas.addEventListener("click", (event) => events.pin(nodeAt(event)));
  }

  /** A new expression. One without operators is no circuit, and the panel is not there. */
  start(trace, vocabulary, { inPlace }) {
    this.vocabulary = vocabulary;
    this.frame = this.circuit = null;
    byId("circuit").hidden = !trace.parenthesized;
    if (byId("circuit").hidden) return;
    this.leaf = Math.max(LEAF, wideEnough(vocabulary.longest) + 8);
    this.circuit = circuitOf(trace, vocabulary, inPlace);
    this.zoomed = null; // found when it can be seen
  }

  /** The largest zoom at which all of it fits, if one is readable. */
  fittingZoom() {
    const fits = (zoom) => this.widthAt(zoom) <= this.box.clientWidth && this.heightAt(zoom) <= 420;
    return ZOOMS.filter((zoom) => zoom >= READABLE && zoom <= 1).findLast(fits) ?? 1;
  }

  show(frame) {
    if (!this.circuit) return;
    this.frame = frame;
    this.holders = holdersOf(this.circuit, frame.tokens);
    this.lay();
  }

  widthAt(zoom) {
    return (this.circuit.leaves * this.leaf + 24) * zoom;
  }

  heightAt(zoom) {
    return ((this.circuit.levels - 1) * LEVEL + NODE + 24) * zoom;
  }

  zoom(direction) {
    this.zoomed = ZOOMS[ZOOMS.indexOf(this.zoomed) + direction] ?? this.zoomed;
    this.lay();
    this.reveal(this.lit.pinned ?? -1);
  }

  lay() {
    if (!this.frame || !this.box.clientWidth) return;
    this.zoomed ??= this.fittingZoom();
    this.width = Math.max(this.widthAt(this.zoomed), this.box.clientWidth);
    this.left = (this.width - this.widthAt(this.zoomed)) / 2;
    this.canvas.setAttribute("width", this.width);
    this.canvas.setAttribute("height", this.heightAt(this.zoomed));
    this.draw();
  }

  place(node) {
    const x = this.left + (12 + (node.x + 0.5) * this.leaf) * this.zoomed;
    return [x, (12 + NODE / 2 + node.level * LEVEL) * this.zoomed];
  }

  /** The node that a position belongs to: its own, or that of the span it encloses, or is now the
   * value of. */
  nodeOf(position) {
    const { nodes, belongs, symbols } = this.circuit;
    let node = nodes.get(nodes.has(position) ? position : belongs.get(position));
    const isFilled = this.frame.tokens[position] !== EMPTY;
    while (symbols && isFilled && node?.parent && !this.holders.has(node)) node = node.parent;
    return node;
  }

  reveal(position) {
    if (!this.frame) return;
    const node = this.nodeOf(position);
    if (!node || !this.zoomed) return;
    const [x, y] = this.place(node);
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = this.box;
    if (x < scrollLeft || x > scrollLeft + clientWidth) this.box.scrollLeft = x - clientWidth / 2;
    if (y < scrollTop || y > scrollTop + clientHeight) this.box.scrollTop = y - clientHeight / 2;
  }

  highlight(hovered, pinned) {
    this.lit = { hovered, pinned };
    this.mark();
  }

  /** Rings around nodes. The nodes themselves stay: one replaced under the pointer would be entered
   * by it again, and so on. */
  mark() {
    if (!this.frame || !this.zoomed) return;
    const lit = Object.entries(this.lit).map(([name, position]) => [name, this.nodeOf(position)]);
    this.marks.replaceChildren(
      ...lit.filter(([, node]) => node).map(([name, node]) => this.ring(node, name)),
    );
  }

  ring(node, name) {
    const [x, y] = this.place(node);
    const width = this.widthOf(node) + 6;
    const height = NODE * this.zoomed + 6;
    const box = { x: x - width / 2, y: y - height / 2, width, height, rx: height / 2 };
    return svg("rect", { class: name, "data-of": node.position, ...box });
  }

  /** Where what is left of a node stands. */
  holder(node) {
    return this.holders.get(node) ?? node.position;
  }

  symbolOf(node) {
    return this.vocabulary.brief(this.frame.tokens[this.holder(node)]);
  }

  widthOf(node) {
    return wideEnough([...this.symbolOf(node)].length) * this.zoomed;
  }

  draw() {
    if (!this.frame || !this.zoomed) return;
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = this.box;
    const [left, right] = [scrollLeft - AROUND, scrollLeft + clientWidth + AROUND];
    const [top, bottom] = [scrollTop - AROUND, scrollTop + clientHeight + AROUND];
    const { step } = this.frame;
    const alive = (node) => this.holders.has(node);
    const clusterOf = (node) => {
      const position = this.holder(node);
      return step?.mask?.[position] ? step.groups[position] : 0;
    };
    const [glows, edges, nodes] = [[], [], []];
    for (const node of this.circuit.nodes.values()) {
      const [x, y] = this.place(node);
      const cluster = alive(node) ? clusterOf(node) : 0;
      if (node.parent) {
        const [a, b] = this.place(node.parent);
        if (Math.max(x, a) < left || right < Math.min(x, a) || y < top || bottom < b) continue;
        edges.push(
          svg("line", { class: alive(node) ? "edge" : "edge gone", x1: x, y1: y, x2: a, y2: b }),
        );
        if (cluster && clusterOf(node.parent) === cluster) {
          glows.push(
            svg("line", {
              class: `glow ${clusterInk(cluster)}`,
              x1: x,
              y1: y,
              x2: a,
              y2: b,
              "stroke-width": 34 * this.zoomed,
            }),
          );
        }
      }
      if (x < left || right < x || y < top || bottom < y) continue;
      if (cluster) {
        const size = { cx: x, cy: y, r: 19 * this.zoomed };
        glows.push(svg("circle", { class: `glow ${clusterInk(cluster)}`, ...size }));
      }
      nodes.push(this.node(node, x, y, alive(node)));
    }
    this.canvas.replaceChildren(...glows, ...edges, ...nodes, this.marks);
    this.mark();
  }

  node(node, x, y, alive) {
    const kind = alive ? this.vocabulary.kind(this.frame.tokens[this.holder(node)]) : "empty";
    const group = svg("g", {
      class: `node ink-${kind}${alive ? "" : " gone"}`,
      "data-position": this.holder(node),
    });
    const size = NODE * this.zoomed;
    const wide = this.widthOf(node);
    if (!alive) {
      group.append(svg("circle", { cx: x, cy: y, r: 3 * Math.max(0.6, this.zoomed) }));
      return group;
    }
    group.append(
      svg("rect", { x: x - wide / 2, y: y - size / 2, width: wide, height: size, rx: size / 2 }),
    );
    if (this.zoomed >= READABLE) {
      const text = svg("text", { x, y, dy: "0.35em" }, this.symbolOf(node));
      text.style.fontSize = `${13 * this.zoomed}px`;
      group.append(text);
    }
    return group;
  }
}
