// The page compare: one field of several entities in one chart.
import { ChartPage } from "./chartpage.js";
import { el } from "./dom.js";
import { swatch } from "./legend.js";
import { entityPicker } from "./pickers.js";
import { coloursOf } from "./theme.js";
import { timeKeys } from "./timebar.js";
import * as values from "./values.js";

export const title = "Compare";
export const keys = timeKeys;

export const open = (frame, root) => new Compare(frame, root);

class Compare extends ChartPage {
  get numbers() { return this.fields.filter((f) => f.numbers); }
  get chosen() { return values.choose(this.fields, this.frame.all("field"), 1, "numbers")[0]; }

  name() { return title; }

  heading() {
    const rest = (id) => this.entities.filter((other) => other !== id), colours = coloursOf(this.entities);
    return [el("ul", { class: "chips", "aria-label": "Entities" }, this.entities.map((id, i) => {
      const name = values.nameOf(values.partsOf(id));
      return el("li", { class: "chip" }, swatch(colours[i]), el("a", { href: this.frame.address("entity", { dataset: this.dataset.name, entity: id }) }, name),
        this.entities.length > 1 ? el("button", { type: "button", class: "quiet", "aria-label": "Remove " + name, onclick: () => this.frame.go(null, { entity: rest(id) }) }, "✕") : null);
    })), this.entities.length < 12 ? entityPicker(this.frame, this.dataset.name, "Add an entity", (id) => this.frame.go(null, { entity: [...new Set([...this.entities, id])] })) : null,
    el("a", { class: "button", href: this.frame.address("fleet", { dataset: this.dataset.name, pick: this.entities }) }, "Choose others")];
  }

  wantedPanels() {
    if (!this.chosen) return [];
    const colours = coloursOf(this.entities);
    return [{
      title: values.label(this.chosen), height: Math.max(240, Math.min(600, innerHeight - 400 - 34 * Math.min(4, this.entities.length))),
      lines: this.entities.map((entity, i) => ({ entity, field: this.chosen, name: values.nameOf(values.partsOf(entity)), colour: colours[i] })),
    }];
  }

  tools() {
    return [el("select", { "aria-label": "Field", onchange: (event) => this.frame.go(null, { field: event.target.value }) },
      this.numbers.map((f) => el("option", { value: f.path, selected: f.path === this.chosen }, values.label(f.path))))];
  }
}
