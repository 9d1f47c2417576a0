// What the pages keys and health share: numbers in words, tables, and reading again at an interval.
import { el, failed, loading } from "./dom.js";
import { pause } from "./api.js";

const plain = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** number shows a number with three digits, or all of them before the point. */
export const number = (x) => Math.abs(x) >= 1000 ? whole.format(x) : plain.format(x);

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(x) {
  let unit = 0;
  for (; Math.abs(x) >= 1024 && unit < units.length - 1; unit++) x /= 1024;
  return number(x) + " " + units[unit];
}

/** duration shows seconds as people say them. */
export function duration(seconds) {
  for (const [size, unit] of [[86400, "days"], [3600, "h"], [60, "min"]]) {
    if (seconds >= 2 * size) return number(seconds / size) + " " + unit;
  }
  return number(seconds) + " s";
}

/** table returns a table. A column is [title, "number" or null]; a row is a list of texts or elements. */
export function table(caption, columns, rows) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", { class: "figures" }, el("caption", { class: "hidden" }, caption),
      el("thead", null, el("tr", null, columns.map(([title, kind]) => el("th", { scope: "col", class: kind }, title)))),
      el("tbody", null, rows.map((row) => el("tr", null, row.map((cell, i) =>
        i === 0 ? el("th", { scope: "row" }, cell) : el("td", { class: columns[i][1] }, cell)))))));
}

/** level shows how much of something is used, as a bar and in words. */
export function level(name, used, most, show = number) {
  const share = most > 0 ? used / most : 0;
  return el("span", { class: "level" },
    el("meter", { min: 0, max: 1, high: 0.8, value: Math.min(1, share), "aria-label": name }),
    el("span", null, `${show(used)} of ${show(most)}`));
}

/** facts is a list of names and values. */
export function facts(pairs) {
  return el("dl", { class: "facts" }, pairs.filter((p) => p).map(([name, value, note]) =>
    el("div", null, el("dt", null, name), el("dd", null, value, note ? el("small", null, note) : null))));
}

/** panel is a part of a page with a title, and a note on where its figures are from. */
export function panel(title, note, ...content) {
  return el("section", { class: "card report" }, el("h2", null, title), note ? el("p", { class: "note" }, note) : null, content.flat().filter((node) => node));
}

/**
 * again reads something and shows it, at the interval that the answer states. It pauses while the tab is hidden, and keeps the last
 * figures, with a note, when a later read fails.
 */
export async function again(what, root, read, show, signal) {
  root.replaceChildren(loading(what));
  for (let shown = false; !signal.aborted;) {
    let wait = 5000;
    try {
      const got = await read(signal);
      if (signal.aborted) return;
      root.replaceChildren(...show(got).filter((node) => node));
      wait = got.every_ms;
      shown = true;
    } catch (problem) {
      if (signal.aborted) return;
      if (!shown || [403, 404].includes(problem.status)) {
        root.replaceChildren(failed(problem, () => again(what, root, read, show, signal)));
        return;
      }
      root.querySelector(".stale")?.remove();
      root.prepend(el("p", { class: "stale error", role: "alert" }, "These figures are old: " + problem.message));
    }
    try {
      await pause(wait, signal);
      while (document.hidden) await pause(1000, signal);
    } catch { return; }
  }
}
