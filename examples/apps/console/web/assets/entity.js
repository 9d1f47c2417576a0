// The page entity: all fields of one entity over time.
import { ChartPage } from "./chartpage.js";
import { el } from "./dom.js";
import { entityPicker, fieldMenu } from "./pickers.js";
import { coloursOf } from "./theme.js";
import { timeKeys } from "./timebar.js";
import { both, span, stamp } from "./time.js";
import * as values from "./values.js";

export const title = "Entity";
export const keys = timeKeys;

const most = 6, firstShown = 4;

export const open = (frame, root) => new Entity(frame, root);

class Entity extends ChartPage {
  get entities() { return this.frame.all("entity").slice(0, 1); }

  name() { return this.entities.length ? values.nameOf(values.partsOf(this.entities[0])) : title; }

  heading() {
    this.age = el("span", { class: "note" });
    this.last = this.newest;
    this.showAge();
    document.title = this.name() + " · Tidemark console";
    return [el("a", { class: "button back", href: this.frame.address("fleet", { dataset: this.dataset.name }), "aria-label": "Back to the fleet" }, "←"),
      el("span", { class: "note" }, this.dataset.name), this.age,
      entityPicker(this.frame, this.dataset.name, "Open another entity", (id) => this.frame.go("entity", { entity: id, at: null, cursor: null }))];
  }

  get chosen() { return values.choose(this.fields, this.frame.all("field"), this.frame.all("field").length ? most : firstShown); }

  wantedPanels() {
    const entity = this.entities[0], shown = this.chosen.map((path) => this.fields.find((f) => f.path === path)), [colour] = coloursOf([entity]);
    const states = shown.filter((f) => f.states > f.numbers).length, room = innerHeight - 290 - 95 * states;
    const height = Math.round(Math.max(innerWidth < 760 ? 140 : 110, Math.min(420, room / Math.max(1, shown.length - states) - 45)));
    return shown.map((field) => {
      const title = values.label(field.path);
      if (field.states > field.numbers) return { title, bands: { entity, field: field.path } };
      return { title, height, lines: [{ entity, field: field.path, name: title, colour }] };
    });
  }

  tools() {
    return [fieldMenu("Fields", this.fields, this.chosen, most, (field) => this.frame.go(null, { field }))];
  }

  seen(rows) {
    this.last = rows.reduce((last, row) => Math.max(last, row.t), this.last);
    this.showAge();
  }

  showAge() {
    const ago = this.frame.now() - this.last;
    this.age.textContent = `last point ${stamp(Math.floor(this.last / 1000) * 1000).slice(ago < 86400000 ? 11 : 0)}, ${span(ago)} ago`;
    this.age.title = both(this.last);
  }
}
