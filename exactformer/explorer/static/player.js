// Stepping, playing and scrubbing through the frames, by button, slider and key.

const ICONS = {
  first: "M5 4v12M15 4l-8 6 8 6z",
  back: "M13 4l-8 6 8 6z",
  play: "M6 3l10 7-10 7z",
  pause: "M6 4h3v12H6zM12 4h3v12h-3z",
  next: "M7 4l8 6-8 6z",
  last: "M15 4v12M5 4l8 6-8 6z",
};

const KEYS = [
  ["→", "next iteration"],
  ["←", "one back"],
  ["space", "play or pause"],
  ["home, end", "to the start, to the end"],
  ["N, P", "next and previous statement of a program"],
  ["R", "draw a random expression or program"],
  ["L", "iterations by the depth or its logarithm"],
  ["/", "type; esc leaves the field"],
  ["W", "weights and back"],
  ["+, −", "wider and narrower columns"],
  ["T", "light or dark"],
  ["esc", "let go of what is selected"],
  ["?", "these keys"],
];

class Player {
  /** `show` is called with the number of the frame to show. */
  constructor(show) {
    this.show = show;
    this.timer = null;
    for (const name of ["first", "back", "play", "next", "last"]) byId(name).append(icon(name));
    byId("first").addEventListener("click", () => this.go(0));
    byId("back").addEventListener("click", () => this.go(this.at - 1));
    byId("next").addEventListener("click", () => this.go(this.at + 1));
    byId("last").addEventListener("click", () => this.go(this.end));
    byId("play").addEventListener("click", () => this.toggle());
    byId("scrub").addEventListener("input", (event) => this.go(Number(event.target.value)));
  }

  /** A new trace with this many iterations. */
  start(end, at) {
    this.pause();
    this.end = end;
    byId("scrub").max = end;
    this.go(at);
  }

  go(frame, playing = false) {
    if (this.end === undefined) return; // nothing is traced yet
    if (!playing) this.pause();
    this.at = Math.max(0, Math.min(this.end, frame));
    byId("scrub").value = this.at;
    byId("where").textContent =
      this.at < this.end ? `${this.at + 1} of ${this.end}` : `end, after ${this.end}`;
    for (const name of ["first", "back"]) byId(name).disabled = this.at === 0;
    for (const name of ["next", "last"]) byId(name).disabled = this.at === this.end;
    this.show(this.at);
  }

  toggle() {
    if (!this.end) return;
    if (this.timer) {
      this.pause();
      return;
    }
    if (this.at === this.end) this.go(0);
    byId("play").replaceChildren(icon("pause"));
    byId("play").setAttribute("aria-label", "Pause");
    const pace = Math.max(120, Math.min(1100, 15000 / this.end)); // long ones in a quarter of a minute
    this.timer = setInterval(() => {
      this.go(this.at + 1, true);
      if (this.at === this.end) this.pause();
    }, pace);
  }

  pause() {
    if (!this.timer) return;
    clearInterval(this.timer);
    this.timer = null;
    byId("play").replaceChildren(icon("play"));
    byId("play").setAttribute("aria-label", "Play");
  }
}

function icon(name) {
  return svg(
    "svg",
    { viewBox: "0 0 20 20", "aria-hidden": "true" },
    svg("path", { d: ICONS[name] }),
  );
}

/** Keys act on the page unless they are typed into a field. `actions` maps a key to what it does. */
function listenToKeys(actions) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("help-dialog").open) return;
    const { target } = event;
    if (target.matches("textarea, select, input:not([type=range])")) {
      if (event.key === "Escape") target.blur();
      return;
    }
    // Space presses a button that has the focus, and arrows move a slider: both as usual.
    if (event.key === " " && target.matches("button")) return;
    if (
      event.key.startsWith("Arrow") &&
      target.matches("[role=tab], #tree, #scroller, #wires") &&
      event.shiftKey
    )
      return;
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}

function fillHelp() {
  byId("help-keys").replaceChildren(
    ...KEYS.flatMap(([key, does]) => [html("dt", {}, html("kbd", {}, key)), html("dd", {}, does)]),
  );
}
