// The legends of panels: the newest, lowest, mean and highest number of each line in the range, and how long each state lasted.
import { el } from "./dom.js";
import { number } from "./figures.js";
import { figuresOf, lengthsOf } from "./lines.js";
import { stateColour } from "./theme.js";
import { length, stamp } from "./time.js";
import { decimals, digits, meanUnit, padded } from "./units.js";
import { visible } from "./values.js";

export const swatch = (n) => {
  const node = el("i", { class: "swatch", "aria-hidden": "true" });
  node.style.background = typeof n === "number" ? `var(--series-${n % 12 + 1})` : stateColour(n);
  return node;
};

const names = ["last", "min", "mean", "max"];

/** Legend has a row for each line of a panel. A click on one shows only this line; with Shift, also those that are shown. */
export class Legend {
  constructor(panel, many) {
    this.panel = panel;
    this.cells = panel.lines.map(() => names.map(() => el(many ? "td" : "dd")));
    this.counts = panel.lines.map(() => el(many ? "td" : "dd"));
    if (!many) {
      panel.header.append(el("dl", { class: "legend" }, swatch(panel.lines[0].colour),
        names.map((name, i) => el("div", null, el("dt", null, name), this.cells[0][i])), el("div", { class: "points" }, el("dt", null, "points"), this.counts[0])));
      return;
    }
    this.buttons = panel.lines.map((line) => el("button", { type: "button", class: "quiet", "aria-pressed": "false", onclick: (event) => panel.on.isolate(line.entity, event.shiftKey) }, swatch(line.colour), line.name));
    panel.node.append(el("div", { class: "legend scroll", tabindex: "0", role: "region", "aria-label": "Legend of " + panel.name },
      el("table", null, el("thead", null, el("tr", null, el("th", { scope: "col" }, "Entity"), [...names, "points"].map((name) => el("th", { scope: "col", class: "value" }, name)))),
        el("tbody", null, panel.lines.map((line, i) => el("tr", null, el("th", { scope: "row" }, this.buttons[i]), this.cells[i], this.counts[i]))))));
  }

  set(data, view) {
    const { unit } = this.panel, figures = data.map((line) => figuresOf(line, view));
    const texts = figures.map((all) => names.map((name) => (all.n ? digits(all[name], name === "mean" ? meanUnit(all, unit) : unit) : "–")));
    const places = names.map((name) => Math.min(2, Math.max(...texts.flatMap((row) => row.filter((_, k) => (names[k] === "mean") === (name === "mean")).map(decimals)))));
    this.panel.lines.forEach((line, i) => {
      const all = figures[i], title = all.from === undefined ? "of all points shown" : `from ${stamp(Math.round(all.from))} to ${stamp(Math.round(all.to))}`;
      names.forEach((name, k) => {
        this.cells[i][k].textContent = view.complete ? padded(texts[i][k], places[k]) : "…";
        this.cells[i][k].title = title;
      });
      this.counts[i].textContent = view.complete ? number(all.n) : "…"; // the points of the range are not all there yet
      if (!this.buttons) return;
      const alone = (view.only || []).includes(line.entity);
      this.buttons[i].setAttribute("aria-pressed", String(alone));
      this.buttons[i].closest("tr").classList.toggle("off", !this.panel.shown(line));
    });
  }
}

/** StateLegend has the newest state, and how long each state lasted in the range, the longest first. */
export class StateLegend {
  constructor(panel) {
    this.node = el("dl", { class: "legend" });
    panel.header.append(this.node);
  }

  set(bands, view) {
    const all = view.complete ? lengthsOf(bands, view) : [], shown = all.slice(0, 6).map(([state, ms]) => JSON.stringify([state, length(ms)])).join();
    if (shown === this.shown) return;
    this.shown = shown;
    this.node.replaceChildren(...all.slice(0, 6).map(([state, ms]) => el("div", null, el("dt", null, state === null ? "several" : [swatch(state), visible(state)]), el("dd", null, length(ms)))),
      ...(all.length > 6 ? [el("div", null, el("dt", null, `${all.length - 6} more`))] : []));
  }
}
