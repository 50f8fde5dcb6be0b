// Light or dark: the system's choice, until one makes another.

function turnTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
  setTheme(now === "dark" ? "light" : "dark");
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // A browser may keep no memory for a file; the choice then lasts as long as the page.
  }
}

try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") setTheme(theme);
} catch {
  // As above: without a memory the system's choice holds.
}
