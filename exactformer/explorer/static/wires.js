// The wires of a program: a column for each iteration, statements as boxes from the iteration in
// which they begin to the one after which they have their value, and an arc for each wire.

const STATEMENT = 40; // height of a box
const BETWEEN = 12; // from one box to the next below
const GAP = 44; // between columns, for arcs
const HEAD = 26; // height of the headings
const SIDE_BY_SIDE = 4; // wires between two rows that are drawn apart
const CHARACTER = 7.4; // pixels of one in a box
const ROOM = [96, 210]; // pixels of a box in one column, at least and at most

class Wires {
  constructor(events) {
    this.panel = byId("wires-panel");
    this.box = byId("wires");
    this.canvas = svg("svg", { role: "img", "aria-label": "Statements by iteration, and wires" });
    this.box.append(this.canvas);
    this.box.addEventListener(
      "scroll",
      oncePerFrame(() => this.draw()),
      { passive: true },
    );
    new ResizeObserver(() => this.lay()).observe(this.box);
    const at = (event) => {
      const number = event.target.closest("[data-statement]")?.dataset.statement;
      return number === undefined ? null : this.run.statements[number];
    };
    this.canvas.addEventListener("pointerover", (event) => events.hover(at(event)));
    this.canvas.addEventListener("pointerleave", () => events.hover(null));
    this.canvas.addEventListener("click", (event) => at(event) && events.pin(at(event)));
  }

  /** A new program; a run without names has no wires to show. */
  start(run, vocabulary) {
    Object.assign(this, { run, vocabulary, lit: {} });
    this.panel.hidden = !run.named;
    if (!run.named) return;
    const lengths = run.statements.flatMap(({ name, text }) => [name.length + 4, text.length]);
    const wanted = extreme(lengths, Math.max, 0) * CHARACTER + 20;
    this.wanted = Math.min(ROOM[1], Math.max(ROOM[0], wanted));
    this.rows = rowsOf(run);
    this.box.scrollTo(0, 0);
    this.lay();
  }

  /** Widths and the height; then draw. */
  lay() {
    if (!this.run?.named || !this.box.clientWidth) return;
    const { end } = this.run;
    const fitting = (this.box.clientWidth - 2 * MARGIN - end * GAP) / (end + 1);
    this.room = Math.max(this.wanted, Math.min(fitting, ROOM[1]));
    this.canvas.setAttribute("width", this.left(end) + this.room + MARGIN);
    this.canvas.setAttribute("height", this.top(this.rows));
    this.draw();
  }

  left(column) {
    return MARGIN + column * (this.room + GAP);
  }

  top(row) {
    return HEAD + row * (STATEMENT + BETWEEN) + BETWEEN / 2;
  }

  /** Where the box of a statement is. */
  place(statement) {
    const x = this.left(firstColumn(statement));
    const width = this.left(statement.end) + this.room - x;
    return { x, y: this.top(statement.row), width, height: STATEMENT };
  }

  show(now) {
    this.now = now;
    byId("wires-caption").textContent = wiresSummary(this.run, now);
    this.reveal({ x: this.left(Math.min(now + 1, this.run.end)), width: this.room });
    this.draw();
  }

  /** Scroll to a box, or sideways to a column, if it is not in view. */
  reveal({ x, y, width }) {
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = this.box;
    if (x < scrollLeft || x + width > scrollLeft + clientWidth)
      this.box.scrollLeft = x - (clientWidth - width) / 2;
    if (y < scrollTop || y + STATEMENT > scrollTop + clientHeight)
      this.box.scrollTop = y - clientHeight / 2;
  }

  highlight(hovered, pinned, shown) {
    this.lit = { hovered, pinned, shown };
    this.mark();
  }

  /** Frames around statements, and their wires in bold. The boxes themselves stay: a click on one
   * that is replaced under the pointer would be lost. */
  mark() {
    const { statements } = this.run;
    const chosen = this.lit.hovered ?? this.lit.pinned;
    for (const box of this.canvas.querySelectorAll(".statement")) {
      for (const [name, statement] of Object.entries(this.lit))
        box.classList.toggle(name, statements[box.dataset.statement] === statement);
    }
    for (const wire of this.canvas.querySelectorAll(".wire")) {
      const ends = [wire.dataset.from, wire.dataset.to].map((number) => statements[number]);
      wire.classList.toggle("bold", Boolean(chosen) && ends.includes(chosen));
      wire.classList.toggle("faded", Boolean(chosen) && !ends.includes(chosen));
    }
  }

  draw() {
    if (!this.run?.named || this.now === undefined || !this.box.clientWidth) return;
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = this.box;
    const isSeen = ([left, top], [right, bottom]) =>
      left <= scrollLeft + clientWidth + AROUND &&
      scrollLeft - AROUND <= right &&
      top <= scrollTop + clientHeight + AROUND &&
      scrollTop - AROUND <= bottom;
    const { statements } = this.run;
    const [arcs, boxes] = [[], []];
    for (const [number, statement] of statements.entries()) {
      const { x, y, width, height } = this.place(statement);
      if (isSeen([x, y], [x + width, y + height])) boxes.push(this.statement(statement, number));
      for (const from of statement.from) {
        const arc = this.arc(from, number);
        if (isSeen(...arc.corners)) arcs.push(arc.path);
      }
    }
    this.canvas.replaceChildren(...this.headings(scrollLeft, clientWidth), ...arcs, ...boxes);
    this.mark();
  }

  /** The iterations in view, and a band behind the one that is about to take place. */
  headings(scrollLeft, clientWidth) {
    const step = this.room + GAP;
    const first = Math.max(0, Math.floor((scrollLeft - MARGIN) / step));
    const last = Math.min(this.run.end, Math.ceil((scrollLeft + clientWidth) / step));
    const drawn = [];
    for (let column = first; column <= last; column++) {
      const next = column === this.now + 1;
      if (next)
        drawn.push(
          svg("rect", {
            class: "column",
            x: this.left(column) - GAP / 2 + 4,
            width: step - 8,
            y: 0,
            height: this.top(this.rows),
            rx: 6,
          }),
        );
      const title = column ? `iteration ${column}` : "start";
      const name = next ? "note middle next" : "note middle";
      drawn.push(note(title, this.left(column) + this.room / 2, 17, name));
    }
    return drawn;
  }

  /** From a statement's value to a use of it, both by number. */
  arc(from, to) {
    const [one, other] = [this.run.statements[from], this.run.statements[to]];
    const [a, b] = [this.place(one), this.place(other)];
    const [start, end] = [a.x + a.width, b.x];
    const [high, low] = [a.y + STATEMENT / 2, b.y + STATEMENT / 2];
    const bend = GAP * 0.6;
    const way = this.between(one.row, other.row) + (from % SIDE_BY_SIDE) * 2 - SIDE_BY_SIDE + 1;
    const isNext = end - start < GAP + 1;
    const curve = isNext
      ? `C${start + bend} ${high} ${end - bend} ${low} ${end} ${low}`
      : `C${start + bend} ${high} ${start + GAP - bend} ${way} ${start + GAP} ${way}` +
        `H${end - GAP}C${end - GAP + bend} ${way} ${end - bend} ${low} ${end} ${low}`;
    const sent = one.end <= this.now ? "ink-value sent" : "ink-plain";
    const path = svg("path", {
      class: `wire ${sent}${other.start === this.now ? " read" : ""}`,
      "data-from": from,
      "data-to": to,
      d: `M${start} ${high}${curve}`,
    });
    const heights = isNext ? [high, low] : [high, low, way];
    const corners = [
      [start, Math.min(...heights)],
      [end, Math.max(...heights)],
    ];
    return { path, corners };
  }

  /** Where a wire passes other columns: between two rows, so that no box is in its way. */
  between(from, to) {
    return from <= to ? this.top(to) - BETWEEN / 2 : this.top(to + 1) - BETWEEN / 2;
  }

  statement(statement, number) {
    const { name, text, start, end, value, expected } = statement;
    const { x, y, width, height } = this.place(statement);
    const isKnown = end <= this.now;
    const state = isKnown ? "known" : start <= this.now ? "acts" : "waits";
    const wrong = isKnown && value !== expected ? " off" : "";
    const group = svg("g", {
      class: `statement ${state}${wrong} ink-${isKnown ? "value" : "plain"}`,
      "data-statement": number,
    });
    const shown = textAt(statement, this.now);
    const room = Math.floor((width - 20) / CHARACTER);
    const chip = isKnown ? [...shown].length + 1 : 0;
    group.append(
      svg("title", {}, `${name} = ${text}${isKnown ? ` is ${value}` : ""}`),
      svg("rect", { x, y, width, height, rx: 7 }),
      note(cut(name, room - chip), x + 10, y + 16, "note name"),
      note(cut(isKnown ? text : shown, room), x + 10, y + 32, "note text"),
    );
    if (isKnown) group.append(note(cut(value, 12), x + width - 10, y + 17, "note value"));
    return group;
  }
}

/** The first column of a statement: a constant is there at the start, others when they act. */
function firstColumn({ start, end }) {
  return Math.min(start + 1, end);
}

/** Put each statement into a row in which no other one is in its columns, near those that it reads;
 * the number of rows. */
function rowsOf({ statements }) {
  const ends = []; // of each row, the last column that is taken
  const order = [...statements].sort((a, b) => firstColumn(a) - firstColumn(b)); // stable
  for (const statement of order) {
    const rows = statement.from.map((i) => statements[i].row);
    const wanted = rows.length ? rows.reduce((a, b) => a + b) / rows.length : 0;
    let best = ends.length;
    ends.forEach((end, row) => {
      const isFree = end < firstColumn(statement);
      if (isFree && Math.abs(row - wanted) < Math.abs(best - wanted)) best = row;
    });
    statement.row = best;
    ends[best] = statement.end;
  }
  return ends.length;
}
