// The theme and the time zone are the user's own, so they are kept in this browser and not in the address.
const themes = ["auto", "light", "dark"];

export function theme() {
  const kept = localStorage.getItem("theme");
  return themes.includes(kept) ? kept : "auto";
}

/** shownTheme returns the theme that is shown: light or dark. */
export const shownTheme = () => (theme() === "auto" ? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light") : theme());

export function applyTheme() {
  const name = theme();
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
}

export function nextTheme() {
  localStorage.setItem("theme", themes[(themes.indexOf(theme()) + 1) % themes.length]);
  applyTheme();
  window.dispatchEvent(new Event("themechange"));
}

/** colour returns a colour of the theme, for canvases. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

/** series returns the colour of the nth line of a chart. */
export function series(n) {
  return colour("series-" + (n % 8 + 1));
}

/** stateColour returns the colour of a state. It depends on the text alone, so a state has it at each time and on each page. */
export function stateColour(text) {
  let hash = 23301; // so that states which usually come together, such as on and off, have different colours
  for (const c of text) hash = Math.imul(hash ^ c.codePointAt(0), 16777619) >>> 0;
  hash = (hash ^ hash >>> 15) % 24;
  return `oklch(${colour(hash < 12 ? "state-1" : "state-2")} ${30 * (hash % 12) + 15})`;
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => window.dispatchEvent(new Event("themechange")));
