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

/** colour returns a colour of the theme, for canvases. The style has those of both themes. */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).match(/#\w+/g)[shownTheme() === "dark" ? 1 : 0];

const colours = 12;

/** series returns the nth colour of lines and states. */
export const series = (n) => colour("series-" + (n % colours + 1));

function hash(text, seed) {
  let sum = seed;
  for (const c of text) sum = Math.imul(sum ^ c.codePointAt(0), 16777619) >>> 0;
  return ((sum ^ sum >>> 15) >>> 0) % colours;
}

/** stateColour returns the colour of a state. It depends on the text alone, so a state has it at each time and on each page. */
export const stateColour = (text) => series(hash(text, 56)); // the seed tells states apart that usually come together, such as on and off

const given = new Map(); // the numbers of the colours of entities

/** coloursOf returns the number of a colour for each entity. It depends on the name; of two that would have the same, one gets another. */
export function coloursOf(ids) {
  if (given.size > 1000) given.clear();
  const used = new Set();
  for (const id of [...ids.filter((id) => given.has(id)), ...ids.filter((id) => !given.has(id))]) {
    let n = given.get(id) ?? hash(id, 56);
    while (used.has(n) && used.size < colours) n = (n + 5) % colours;
    used.add(n);
    given.set(id, n);
  }
  return ids.map((id) => given.get(id));
}

/** inkOn returns black or white: what can be read better on a colour such as #08698f. */
export function inkOn(fill) {
  const [r, g, b] = [1, 3, 5].map((i) => (parseInt(fill.slice(i, i + 2), 16) / 255) ** 2.2);
  return .2126 * r + .7152 * g + .0722 * b > .179 ? "#000000" : "#ffffff";
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => window.dispatchEvent(new Event("themechange")));
