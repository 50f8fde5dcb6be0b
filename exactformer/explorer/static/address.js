// The view is in the address, after the #, so that a link restores it:
// #algebra=boolean&weights=constructed&expression=(~1)&iterations=log&iteration=1&position=2&view=weights
// or, in place of the expression, &program=b=(~a);a=1;&statement=b

// Browsers refuse a page that rewrites its address too often, so stepping rewrites it when it rests.
const REST = 400; // milliseconds
let resting;

function readAddress() {
  clearTimeout(resting);
  const read = new URLSearchParams(location.hash.slice(1));
  const whole = (name) => (/^\d{1,9}$/.test(read.get(name) ?? "") ? Number(read.get(name)) : null);
  return {
    algebra: read.get("algebra"),
    weights: read.get("weights"),
    kind: read.has("program") ? "program" : "expression",
    text: read.get("program") ?? read.get("expression"),
    statement: read.get("statement"),
    iterations: read.get("iterations") === "log" ? "log" : "depth",
    iteration: whole("iteration"),
    position: whole("position"),
    view: read.get("view") === "weights" ? "weights" : "trace",
  };
}

/** Leaves out what is null. Replaces the entry, so that the back button leaves the page. */
function writeAddress(view) {
  const given = Object.entries(view).filter(([, value]) => value !== null);
  clearTimeout(resting);
  resting = setTimeout(() => {
    history.replaceState(null, "", `#${new URLSearchParams(given)}`);
  }, REST);
}
