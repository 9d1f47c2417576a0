// The theme and the time zone are the user's own, so they are kept in this browser and not in the address.
const themes = ["auto", "light", "dark"];

export function theme() {
  const kept = localStorage.getItem("theme");
  return themes.includes(kept) ? kept : "auto";
}

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

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => window.dispatchEvent(new Event("themechange")));
