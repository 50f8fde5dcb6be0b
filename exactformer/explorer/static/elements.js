// Making elements. Text goes in as text, never as markup: nothing typed or sent can become part of
// the page's own code.

const SVG = "http://www.w3.org/2000/svg";

function html(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function byId(id) {
  return document.getElementById(id);
}

/** Runs `draw` at most once a frame, however often it is asked for. */
function oncePerFrame(draw) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  };
}

/** A number for people: few digits, a real minus sign. */
function shown(number) {
  const size = Math.abs(number);
  const text = Number.isInteger(number)
    ? number.toLocaleString("en")
    : size >= 1000 || (size < 0.001 && size > 0)
      ? number.toExponential(1)
      : number.toPrecision(3);
  return text.replace("-", "−");
}

function plural(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

/** Text of at most so many characters. */
function cut(text, most) {
  const characters = [...text];
  return characters.length <= most ? text : `${characters.slice(0, Math.max(1, most - 1)).join("")}…`;
}
