// The sheet: rows of stages over columns of tokens. It scrolls sideways and holds only the columns
// that can be seen and a few on either side, so a thousand tokens cost no more than forty.

const MARGIN = 10; // pixels left and right of the columns
const SPARE = 16; // columns drawn beyond either edge: most scrolling then draws nothing
const WIDTHS = [6, 10, 16, 22, 30, 42, 56]; // of a column, in pixels
const NARROW = 720; // pixels of the window below which labels stand above their rows
const HEADING = 24; // height of such a label

class Sheet {
  constructor(events) {
    this.scroller = byId("scroller");
    this.labels = byId("labels");
    this.overview = byId("overview");
    this.canvas = svg("svg", { role: "img" });
    this.scroller.append(this.canvas);
    this.marks = svg("g", { class: "marks" });
    this.stages = [];
    this.lit = { hovered: null, pinned: null };
    const redraw = oncePerFrame(() => this.draw());
    this.scroller.addEventListener("scroll", redraw, { passive: true });
    new ResizeObserver(() => this.lay()).observe(this.scroller);
    this.canvas.addEventListener("pointermove", (event) => events.hover(this.columnAt(event)));
    this.canvas.addEventListener("pointerleave", () => events.hover(null));
    this.canvas.addEventListener("click", (event) => events.pin(this.columnAt(event)));
    this.overview.addEventListener("pointerdown", (event) => this.jump(event));
    this.overview.addEventListener("pointermove", (event) => event.buttons && this.jump(event));
  }

  /** Show a frame: its stages, each {title, caption, equation, height, draw}. */
  show(frame, stages, vocabulary) {
    const other = this.vocabulary !== vocabulary || this.count !== frame.tokens.length;
    Object.assign(this, { frame, stages, vocabulary });
    if (other) this.width = null; // found when it can be seen
    this.lay();
  }

  /** Room for the longest symbol; a little more or less where all columns then fit. */
  fittingWidth() {
    const wanted = Math.min(56, Math.max(30, this.vocabulary.longest * 9 + 12));
    const fitting = (this.scroller.clientWidth - 2 * MARGIN) / this.count;
    return fitting > 0.8 * wanted ? Math.min(fitting, 1.45 * wanted) : wanted;
  }

  get count() {
    return this.frame?.tokens.length ?? 0;
  }

  x(column) {
    return MARGIN + column * this.width;
  }

  columnAt(event) {
    const x = event.clientX - this.canvas.getBoundingClientRect().left;
    const column = Math.floor((x - MARGIN) / this.width);
    return column >= 0 && column < this.count ? column : null;
  }

  zoom(direction) {
    const middle = (this.scroller.scrollLeft + this.scroller.clientWidth / 2 - MARGIN) / this.width;
    const next =
      direction > 0
        ? WIDTHS.find((width) => width > this.width)
        : WIDTHS.findLast((width) => width < this.width);
    if (next === undefined) return;
    this.width = next;
    this.lay();
    this.scroller.scrollLeft = this.x(middle) - this.scroller.clientWidth / 2;
  }

  /** The columns in view, whole or in part. */
  seen() {
    const left = this.scroller.scrollLeft - MARGIN;
    return [left, left + this.scroller.clientWidth].map((x) => Math.floor(x / this.width));
  }

  /** Of some columns the one nearest to the middle of the view. */
  nearest(columns) {
    const middle = this.seen().reduce((a, b) => a + b) / 2;
    const distance = (column) => Math.abs(column - middle);
    return columns.reduce(
      (best, column) => (distance(column) < distance(best) ? column : best),
      columns[0],
    );
  }

  /** Bring a column into view, if it is not. */
  reveal(column) {
    if (column === null || column >= this.count) return;
    const left = this.x(column) - this.scroller.scrollLeft;
    if (left < 0 || left + this.width > this.scroller.clientWidth) {
      this.scroller.scrollLeft += left - this.scroller.clientWidth / 2;
    }
  }

  jump(event) {
    const box = this.overview.getBoundingClientRect();
    const part = (event.clientX - box.left) / box.width;
    this.scroller.scrollLeft = part * this.canvas.clientWidth - this.scroller.clientWidth / 2;
  }

  /** Heights and labels; then draw. */
  lay() {
    if (!this.frame || !this.scroller.clientWidth) return;
    this.width ??= this.fittingWidth();
    const heading = window.innerWidth < NARROW ? HEADING : 0;
    let top = 0;
    this.rows = this.stages.map((stage) => {
      const row = { stage, rule: top, top: top + heading, height: stage.height };
      top += heading + stage.height;
      return row;
    });
    this.height = top;
    this.canvas.setAttribute(
      "width",
      Math.max(this.x(this.count) + MARGIN, this.scroller.clientWidth),
    );
    this.canvas.setAttribute("height", top);
    this.labels.replaceChildren(...this.rows.map((row) => this.label(row, heading)));
    this.labels.style.height = `${top}px`;
    this.drawn = null;
    this.drawOverview();
    this.draw();
  }

  label({ stage, top, height }, heading) {
    const label = html(
      "div",
      { class: stage.caption ? "label" : "label alone" },
      html("b", {}, stage.title),
      html("span", { class: "equation" }, stage.equation ?? ""),
      html("span", { class: "label-caption" }, stage.caption ?? ""),
    );
    label.style.top = `${top - heading}px`;
    label.style.height = `${heading || height}px`;
    return label;
  }

  draw() {
    if (!this.frame || !this.width) return;
    const seen = this.seen();
    this.drawWindow(seen);
    if (
      this.drawn &&
      this.drawn.from <= Math.max(0, seen[0]) &&
      Math.min(this.count - 1, seen[1]) <= this.drawn.to
    )
      return;
    this.drawn = {
      from: Math.max(0, seen[0] - SPARE),
      to: Math.min(this.count - 1, seen[1] + SPARE),
    };
    const area = {
      ...this.drawn,
      x: (column) => this.x(column),
      width: this.width,
      vocabulary: this.vocabulary,
      frame: this.frame,
      step: this.frame.step,
    };
    const groups = this.rows.map(({ stage, top, height }) =>
      svg(
        "g",
        { class: `stage stage-${stage.name}`, transform: `translate(0 ${top})` },
        ...stage.draw({ ...area, height }),
      ),
    );
    const rules = this.rows
      .slice(1)
      .map(({ rule }) =>
        svg("line", { class: "rule", x1: 0, x2: "100%", y1: rule + 0.5, y2: rule + 0.5 }),
      );
    this.canvas.replaceChildren(...rules, ...this.bands(), ...groups, this.marks);
    this.mark();
  }

  /** A tint behind each cluster, through all rows, as in the paper's Figure 2. */
  bands() {
    const { step } = this.frame;
    if (!step) return [];
    return visibleRuns(step, this.drawn)
      .filter(({ from }) => step.mask[from])
      .map(({ number, from, to }) =>
        svg("rect", {
          class: `band ${clusterInk(number)}`,
          x: this.x(from),
          width: (to - from + 1) * this.width,
          y: 0,
          height: this.height,
        }),
      );
  }

  highlight(hovered, pinned) {
    this.lit = { hovered, pinned };
    this.mark();
  }

  /** Frames around the columns under the pointer and in the selection, and their arcs in bold. */
  mark() {
    if (!this.width) return;
    const columns = [
      ["pinned", this.lit.pinned],
      ["hovered", this.lit.hovered],
    ];
    this.marks.replaceChildren(
      ...columns
        .filter(([, column]) => column !== null && column < this.count)
        .map(([name, column]) =>
          svg("rect", {
            class: name,
            x: this.x(column) + 0.5,
            width: this.width - 1,
            y: 1,
            height: this.height - 2,
            rx: 5,
          }),
        ),
    );
    const chosen = String(this.lit.hovered ?? this.lit.pinned);
    const arcs = [...this.canvas.querySelectorAll(".arc")];
    const touches = ({ dataset }) => dataset.from === chosen || dataset.to === chosen;
    const some = arcs.some(touches);
    for (const arc of arcs) {
      arc.classList.toggle("faded", some && !touches(arc));
      arc.classList.toggle("bold", some && touches(arc));
    }
  }

  /** All columns in small, where they do not fit: the depth, the clusters, and the part in view. */
  drawOverview() {
    const wide = this.x(this.count) + MARGIN > this.scroller.clientWidth + 1;
    this.overview.hidden = !wide;
    if (!wide) return;
    const { step } = this.frame;
    const picture = svg("svg", {
      viewBox: `0 0 ${this.count} 30`,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    });
    if (step) {
      const depth = this.frame.picture.depths(step);
      const most = Math.max(
        1,
        depth.reduce((a, b) => Math.max(a, b), 0),
      );
      const outline = depth
        .map((count, i) => `L${i} ${30 - (26 * Math.max(0, count)) / most}h1`)
        .join("");
      picture.append(svg("path", { class: "depth", d: `M0 30${outline}V30Z` }));
      for (const { number, from, to } of clustersOf(step)) {
        picture.append(
          svg("rect", {
            class: `cluster ${clusterInk(number)}`,
            x: from,
            width: to - from + 1,
            y: 25,
            height: 5,
          }),
        );
      }
    }
    this.view = svg("rect", { class: "view", y: 0, height: 30 });
    picture.append(this.view);
    this.overview.replaceChildren(picture);
  }

  drawWindow([from, to]) {
    if (this.overview.hidden) return;
    this.view.setAttribute("x", Math.max(0, from));
    this.view.setAttribute("width", Math.min(this.count, to + 1) - Math.max(0, from));
  }
}

/** The clusters with a part between two columns, cut to just beyond them. */
function visibleRuns(step, { from, to }) {
  return clustersOf(step)
    .filter((run) => run.from <= to && from <= run.to)
    .map((run) => ({
      ...run,
      from: Math.max(run.from, from),
      to: Math.min(run.to, to),
      whole: run,
    }));
}
