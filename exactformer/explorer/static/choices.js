// The weights that can be chosen, in groups, under names for people.

const GROUPS = [
  ["Given", (name) => name.startsWith("file/")],
  ["Written by hand", (name) => /^constructed|\/fitted$/.test(name)],
  ["Learned from random weights", (name) => /^(?!random)(\w+\/)?\d+$/.test(name)],
  ["Untrained", (name) => name.startsWith("random/")],
];

function weightOptions(names) {
  const groupOf = (name) => GROUPS.find(([, belongs]) => belongs(name));
  return GROUPS.map((group) => [group[0], names.filter((name) => groupOf(name) === group)])
    .filter(([, members]) => members.length)
    .map(([label, members]) =>
      html(
        "optgroup",
        { label },
        ...members.map((name) => html("option", { value: name }, nameOf(name))),
      ),
    );
}

function nameOf(name) {
  if (name.startsWith("file/")) return name.slice("file/".length);
  if (name.startsWith("random/")) return "random";
  if (/\d$/.test(name)) return `learned: seed ${name.split("/").at(-1)}`;
  return name.replace(/^\w+\//, "constructed: ");
}
