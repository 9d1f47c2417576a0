// The table of the page fleet: heads that sort, and rows with a value and a line for each column.
import { el } from "./dom.js";
import { Sparks } from "./sparks.js";
import { shownTheme, stateColour } from "./theme.js";
import { both, span } from "./time.js";
import { decimals, padded } from "./units.js";
import { VirtualList } from "./virtual.js";
import * as values from "./values.js";

const wide = { width: 92, height: 28 }, small = { width: 68, height: 24 };

export class FleetTable {
  /** page has the rows in order, what is known of them, and what a click does. */
  constructor(page, narrow) {
    this.page = page;
    this.narrow = narrow;
    this.theme = shownTheme();
    this.lines = page.shownFields.filter((field) => page.fields.find((f) => f.path === field)?.numbers); // of columns with numbers
    this.head = el("div", { class: "row head", role: "row", "aria-rowindex": "1", id: "fleet-head" },
      cell("columnheader", "pick", el("span", { class: "hidden" }, "Chosen")), this.column("name", "name", page.dataset.key.map((f) => f.name).join(" / ")),
      this.column("age", "-age", "Last point"), page.shownFields.map((field, i) => this.column(`value v${i}`, sortName(field), values.label(field))));
    this.grid = el("div", {
      class: "grid", role: "grid", tabindex: "0", "aria-label": "Entities", "aria-multiselectable": "true", "aria-owns": "fleet-head",
      onkeydown: (event) => { if (page.key(event)) { event.preventDefault(); event.stopPropagation(); } },
    });
    this.node = el("div", { class: "table" }, this.head, this.grid);
    this.node.style.setProperty("--columns", page.shownFields.map((field) => `minmax(60px, ${this.lines.includes(field) ? 1 : 1.15}fr)`).join(" ") || "1fr");
    this.places = []; // decimals of the columns
    this.sparks = new Sparks({
      wanted: () => { const [from, to] = this.list.range(); return page.order.slice(from, to).map((row) => row.id); },
      load: async (ids, points) => (await page.frame.api(page.frame.path(page.dataset.name, "sparks"), { entity: ids, field: this.lines, points }, page.control.signal)).sparks,
      changed: page.redraw,
    });
  }

  /** show makes the rows, once the table is on the page. */
  show() {
    this.list = new VirtualList(this.grid, this.narrow ? 84 : 40, {
      make: () => this.makeRow(), fill: (node, row, index) => this.fill(node, row, index),
      seen: () => { if (this.lines.length) this.sparks.look(); },
    });
    this.size = new ResizeObserver(() => this.node.classList.toggle("no-lines", !this.narrow && this.node.clientWidth < 330 + 165 * this.page.shownFields.length));
    this.size.observe(this.node);
  }

  close() {
    this.list?.close();
    this.size?.disconnect();
  }

  /** column returns a head that sorts: first in one direction, then in the other one, then as it was. */
  column(name, first, title) {
    const other = first.startsWith("-") ? first.slice(1) : "-" + first, sort = this.page.frame.get("sort");
    const next = sort === first ? other : sort === other ? null : first;
    const node = cell("columnheader", name, el("button", { type: "button", class: "quiet", onclick: () => this.page.frame.go("fleet", { sort: next }) },
      title, el("i", { "aria-hidden": "true" }, sort === first ? "▲" : sort === other ? "▼" : "")));
    node.setAttribute("aria-sort", sort === first ? "ascending" : sort === other ? "descending" : "none");
    return node;
  }

  makeRow() {
    const { page } = this;
    const node = el("div", { class: "row", role: "row" },
      cell("gridcell", "pick", el("span", { class: "box", "aria-hidden": "true" })), cell("gridcell", "name", el("a", { tabindex: "-1" })),
      cell("gridcell", "age", el("span", { class: "dot", "aria-hidden": "true" }), el("span")),
      page.shownFields.map((field, i) => cell("gridcell", "value v" + i, el(this.lines.includes(field) ? "canvas" : "b", { class: this.lines.includes(field) ? "spark" : "mark", "aria-hidden": "true" }), el("span"))));
    page.shownFields.forEach((field, i) => { node.children[3 + i].dataset.label = values.label(field); });
    node.addEventListener("pointerover", () => this.explain(node)); // dates take long to write
    node.addEventListener("click", (event) => {
      const row = page.order[node.index];
      if (event.target.closest(".pick")) { page.at = node.index; page.pick(row); return; }
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      page.openEntity(row);
    });
    return node;
  }

  fill(node, row, index) {
    const { page } = this, [pick, name, age, ...rest] = node.children, silent = page.isSilent(row), picked = page.pickedSet.has(row.id);
    if (node.index !== index) {
      node.index = index;
      node.id = "row-" + index;
      node.setAttribute("aria-rowindex", index + 2);
    }
    if (node.getAttribute("aria-selected") !== String(picked)) node.setAttribute("aria-selected", picked);
    node.classList.toggle("silent", silent);
    node.classList.toggle("at", index === page.at);
    set(pick.firstChild, picked ? "☑" : "☐");
    const link = name.firstChild;
    if (link.of !== row.id) {
      link.of = row.id;
      link.replaceChildren(...row.parts.flatMap((part, i) => [i ? el("i", null, "/") : null, values.visible(part)]).filter(Boolean));
      link.href = page.frame.address("entity", { dataset: page.dataset.name, entity: row.id });
      name.title = row.parts.map(values.visible).join("/");
    }
    set(age.lastChild, span(page.frame.now() - row.t) + (silent ? " silent" : ""));
    rest.forEach((cell, i) => this.fillValue(cell, row, i, silent));
  }

  fillValue(cell, row, i, silent) {
    const { page } = this, absent = absentAt(row, i), at = timeAt(row, i), older = !absent && at < row.t, text = row.bad && absent ? "unreadable" : values.text(row.v[i]);
    const [mark, value] = cell.children, n = this.lines.indexOf(page.shownFields[i]);
    if (n >= 0 && decimals(text) > (this.places[i] || 0)) { this.places[i] = Math.min(2, decimals(text)); page.redraw(); }
    cell.classList.toggle("older", older);
    const even = n < 0 ? text : padded(text, this.places[i] || 0);
    set(value, older ? `${even} · ${span(page.frame.now() - at)}` : even);
    if (n < 0) {
      if (mark.of !== text + this.theme) { mark.of = text + this.theme; mark.style.background = absent ? "none" : stateColour(text); }
      return;
    }
    this.sparks.draw(mark, row.id, n, { ...(this.narrow ? small : wide), silent, theme: this.theme });
  }

  /** explain says in the titles of a row when its values are from, and the scales of its lines. */
  explain(node) {
    const { page } = this, row = page.order[node.index], [, , age, ...rest] = node.children;
    if (!row) return;
    age.title = both(row.t);
    rest.forEach((cell, i) => {
      const text = values.text(row.v[i]), n = this.lines.indexOf(page.shownFields[i]), scale = n < 0 ? "" : this.sparks.scale(row.id, n);
      cell.title = !absentAt(row, i) && timeAt(row, i) < row.t ? `${text} at ${both(timeAt(row, i))}` : text;
      if (scale) cell.firstChild.title = `${values.label(page.shownFields[i])}: ${scale}`;
    });
  }

  /** add adds the numbers of a row to the lines in sight. */
  add(row) {
    this.lines.forEach((field, n) => {
      const i = this.page.shownFields.indexOf(field);
      if (!absentAt(row, i)) this.sparks.add(row.id, n, timeAt(row, i), row.v[i]);
    });
  }
}

/** sortName returns a field as the parameter sort names it. */
export const sortName = (field) => (field === "name" || field === "age" || field.startsWith("-") ? "`" + field + "`" : field);

function cell(role, name, ...children) {
  return el("div", { role, class: "cell " + name }, ...children);
}

function set(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export const absentAt = (row, i) => row.v[i] === null || row.v[i] === undefined;

/** timeAt returns the time of a value, which may be from an older point than the newest. */
export const timeAt = (row, i) => row.at?.[i] ?? row.t;
