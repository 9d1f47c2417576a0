// The picture of the page keys: time to the right, row keys from top to bottom, colour by rate. What is shown is in the address.
import { get } from "./api.js";
import { el } from "./dom.js";
import { bytes, facts, number } from "./figures.js";
import { shownTheme } from "./theme.js";
import { iso, stamp } from "./time.js";
import * as values from "./values.js";

const views = ["key", "dataset", "tenant"], metrics = ["rows", "reads", "writes", "bytes", "latency", "failures"];
const [READS, WRITES, FAILURES, BYTES, MICROS] = [0, 1, 2, 3, 4], none = [0, 0, 0, 0, 0];
const least = 14; // pixels between two labels

export class Heat {
  constructor(frame, signal) {
    this.frame = frame;
    this.chosen = null; // column and line
    this.datasets = new Map(); // by tenant
    const choice = (label, parameter, all) => el("label", null, label + " ", el("select", { "aria-label": label, onchange: (event) => this.go({ [parameter]: event.target.value === all[0] ? null : event.target.value }) },
      all.map((name) => el("option", { value: name, selected: name === this.get(parameter, all) }, name))));
    this.light = el("input", { type: "range", min: -4, max: 4, step: 1, value: this.brightness, "aria-label": "Brightness", oninput: () => this.go({ light: this.light.value === "0" ? null : this.light.value }) });
    this.keys = el("input", { type: "search", placeholder: "Keys that begin with", "aria-label": "Keys that begin with", value: frame.get("key") || "", maxlength: 500, spellcheck: "false", autocomplete: "off", onchange: () => this.go({ key: this.keys.value || null }) });
    this.scale = el("span", { class: "note" });
    this.ramp = el("canvas", { class: "ramp", width: 120, height: 10, "aria-hidden": "true" });
    this.labels = el("div", { class: "heat-labels" });
    this.times = el("div", { class: "heat-times", "aria-hidden": "true" });
    this.cells = el("canvas", { tabindex: "0", role: "img", class: "heat-cells", onclick: (event) => this.choose(this.where(event)), onkeydown: (event) => this.key(event) });
    this.mark = el("div", { class: "heat-mark", hidden: true });
    this.details = el("div", { class: "heat-details", role: "status" }, el("p", { class: "note" }, "Choose a cell for its keys and figures: by a click, or with the arrow keys."));
    this.node = el("div", { class: "heat" },
      el("div", { class: "toolbar" }, choice("Lines by", "by", views), choice("Colour by", "of", metrics), this.keys,
        el("button", { type: "button", onclick: () => { this.chosen = null; this.go({ key: null }); } }, "All keys"), el("label", { class: "brightness" }, "Brightness ", this.light), this.ramp, this.scale),
      el("div", { class: "heat-plot" }, this.labels, el("div", { class: "heat-picture" }, this.cells, this.mark), this.times), this.details);
    this.size = new ResizeObserver(() => this.draw());
    this.size.observe(this.cells);
    window.addEventListener("themechange", () => this.draw(), { signal });
    signal.addEventListener("abort", () => this.size.disconnect());
  }

  get(parameter, all) { const wanted = this.frame.get(parameter); return all.includes(wanted) ? wanted : all[0]; }
  get by() { return views.indexOf(this.get("by", views)); }
  get metric() { return metrics.indexOf(this.get("of", metrics)); }
  get brightness() { return Math.max(-4, Math.min(4, Number(this.frame.get("light")) || 0)); }
  get view() { return this.data.views[this.by]; }

  go(set) {
    if ("by" in set) this.chosen = null;
    this.frame.go("keys", set, true);
  }

  update() {
    if (document.activeElement !== this.keys) this.keys.value = this.frame.get("key") || "";
    this.draw();
  }

  /** set shows another recording. */
  set(data) {
    this.data = data;
    for (const view of data.views) { // cells come as flat numbers: column, line, then the figures
      view.byLine = view.lines.map(() => []);
      for (let i = 0; i < view.cells.length; i += 7) view.byLine[view.cells[i + 1]].push(view.cells.slice(i, i + 7));
    }
    this.first = data.columns[0]?.at || 0;
    this.span = data.columns.length ? data.columns[data.columns.length - 1].at - this.first + 1 : 0;
    this.draw();
  }

  value(f, seconds, metric = this.metric) {
    if (metric === 4) return f[MICROS] / (f[READS] + f[WRITES] + f[FAILURES] || Infinity) / 1000;
    return seconds > 0 ? [f[READS] + f[WRITES], f[READS], f[WRITES], f[BYTES], 0, f[FAILURES]][metric] / seconds : 0;
  }

  text(x, metric = this.metric) {
    if (metric === 4) return number(x) + " ms";
    return (metric === 3 ? bytes(x) : number(x)) + "/s";
  }

  /** range returns the lines of keys that begin with the text of the address. */
  range() {
    const lines = this.view.lines, prefix = this.frame.get("key") || "", has = (l) => l.from.startsWith(prefix) || l.to.startsWith(prefix) || l.from <= prefix && prefix <= l.to;
    const from = lines.findIndex(has);
    if (from < 0) return [0, lines.length, prefix !== ""];
    let to = from + 1;
    while (to < lines.length && has(lines[to])) to++;
    return [from, to, false];
  }

  /** rows joins the lines in sight, so that each row has some pixels. */
  rows(height) {
    const [from, to, absent] = this.range(), each = Math.ceil((to - from) / Math.max(1, Math.floor(height / 3))), rows = [];
    for (let at = from; at < to; at += each) {
      const cells = new Map(), end = Math.min(at + each, to);
      for (const [column, , ...figures] of this.view.byLine.slice(at, end).flat()) {
        const sum = cells.get(column) || [...none];
        cells.set(column, sum.map((x, k) => x + figures[k]));
      }
      rows.push({ from: at, to: end, cells });
    }
    const all = rows.flatMap((row) => [...row.cells].map(([column, f]) => this.value(f, this.data.columns[column].seconds))).filter((x) => x > 0).sort((a, b) => a - b);
    const usual = (all[Math.floor(this.data.clip * (all.length - 1))] || 1) * 2 ** -this.brightness;
    return { rows, usual, most: Math.max(all[all.length - 1] || 1, usual), absent };
  }

  /** colour is that of a value: three quarters of the colours are for usual values. */
  colour(x, { usual, most }) {
    const { common, palettes } = this.data, stops = palettes[shownTheme() === "dark" ? 1 : 0];
    const strength = x <= usual ? common * Math.sqrt(x / usual) : Math.min(1, common + (1 - common) * Math.log(x / usual) / Math.log(most / usual));
    const at = strength * (stops.length - 1), i = Math.min(Math.floor(at), stops.length - 2);
    return `rgb(${stops[i].map((c, n) => Math.round(c + (stops[i + 1][n] - c) * (at - i)))})`;
  }

  draw() {
    const { cells } = this, width = cells.clientWidth, height = cells.clientHeight, ratio = devicePixelRatio || 1;
    if (!this.data || !width) return;
    const drawn = this.drawn = this.rows(height), g = cells.getContext("2d");
    cells.width = Math.round(width * ratio);
    cells.height = Math.round(height * ratio);
    const x = (column) => Math.round(column * cells.width / this.span), y = (row) => Math.round(row * cells.height / drawn.rows.length);
    drawn.rows.forEach((row, r) => row.cells.forEach((f, column) => {
      const value = this.value(f, this.data.columns[column].seconds), at = this.data.columns[column].at - this.first;
      if (value <= 0) return;
      g.fillStyle = this.colour(value, drawn);
      g.fillRect(x(at), y(r), Math.max(1, x(at + 1) - x(at)), Math.max(1, y(r + 1) - y(r)));
    }));
    cells.dataset.rows = drawn.rows.length;
    cells.dataset.columns = this.span;
    const lines = drawn.rows.length ? drawn.rows[drawn.rows.length - 1].to - drawn.rows[0].from : 0;
    cells.setAttribute("aria-label", `Heatmap of ${lines} ranges of keys in ${this.span} columns of ${this.data.width / 1000} s; the strongest cell has ${this.text(drawn.most)}`);
    this.drawScale(drawn);
    this.drawLabels(height);
    this.drawTimes(width);
    this.show();
  }

  drawScale(drawn) {
    const g = this.ramp.getContext("2d");
    for (let i = 0; i < 120; i++) {
      const part = i / 119, { common } = this.data;
      g.fillStyle = this.colour(part <= common ? drawn.usual * (part / common) ** 2 : drawn.usual * (drawn.most / drawn.usual) ** ((part - common) / (1 - common)), drawn);
      g.fillRect(i, 0, 1, 10);
    }
    this.scale.textContent = drawn.absent ? "No key that was seen begins so; these are all." : `0 to ${this.text(drawn.usual)}` + (drawn.most > drawn.usual * 1.01 ? `, a few cells up to ${this.text(drawn.most)}` : "") + " in one cell";
  }

  /** drawLabels names tenants, datasets and keys, each where it begins, if there is room under the one before. Those of a phone have one column. */
  drawLabels(height) {
    const { lines } = this.view, { rows } = this.drawn, small = this.labels.clientWidth < 200, by = views[this.by];
    const columns = by === "tenant" ? [(l) => l.tenant] : by === "dataset" ? [(l) => l.tenant, (l) => l.dataset] : [(l) => l.tenant, (l) => l.dataset, (l) => l.fields];
    const same = (n, a, b) => columns.slice(0, n + 1).every((of) => of(a) === of(b));
    const deep = columns.length - 1, begins = (n, r) => r === 0 || !same(n, lines[rows[r - 1].from], lines[rows[r].from]);
    const fewGroups = rows.filter((_, r) => begins(Math.max(0, deep - 1), r)).length * 3 * least < height;
    const shown = small ? (deep && fewGroups ? [deep] : [Math.max(0, deep - 1)]) : columns.map((_, n) => n);
    this.labels.replaceChildren(...shown.map((n) => {
      const node = el("div");
      let free = 0;
      rows.forEach((row, r) => {
        const top = Math.min(r * height / rows.length, height - least), line = lines[row.from];
        if (!begins(n, r) || top < free) return;
        free = top + least;
        const text = small && n ? [...new Set([line.tenant, line.dataset])].slice(0, begins(deep - 1, r) ? 2 : 0).concat(n === deep && by === "key" ? line.fields : []).join(" ") : columns[n](line);
        const tail = n === deep && (!small || !begins(deep - 1, r)); // the end of a key tells it from the one before
        const label = el("button", { type: "button", class: tail ? "quiet tail" : "quiet", title: line.from, onclick: () => this.go({ key: this.prefixOf(n, line) }) }, el("bdi", { dir: "ltr" }, text));
        label.style.top = top + "px";
        node.append(label);
      });
      return node;
    }));
  }

  /** prefixOf is what the keys of a label begin with. */
  prefixOf(n, line) {
    if (!line.tenant.length || line.tenant.startsWith("(")) return line.from;
    return [line.tenant + "#", `${line.tenant}#${line.dataset}#`][n] ?? line.from;
  }

  drawTimes(width) {
    const n = Math.max(1, Math.min(this.span, Math.floor(width / 160))), short = this.data.width < 1000 ? 23 : 19;
    this.times.replaceChildren(...Array.from({ length: n }, (_, i) => {
      const column = Math.floor(i * this.span / n), label = el("span", null, stamp(this.start(column)).slice(i ? 11 : 0, short));
      label.style.left = 100 * column / (this.span || 1) + "%";
      return label;
    }));
  }

  start(column) { return this.data.start + column * this.data.width; }

  where(event) {
    const box = this.cells.getBoundingClientRect(), { rows } = this.drawn, part = (x, of) => Math.max(0, Math.min(of - 1, Math.floor(x * of)));
    return { column: part((event.clientX - box.left) / box.width, this.span), line: rows[part((event.clientY - box.top) / box.height, rows.length)]?.from };
  }

  /** key moves the chosen cell. */
  key(event) {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key], { rows } = this.drawn || {};
    if (event.key === "Escape" && this.chosen) { this.chosen = null; this.show(); }
    else if (step && rows?.length) {
      const row = this.row(), at = this.chosen ? Math.max(0, Math.min(rows.length - 1, row + step[1])) : 0;
      this.choose({ column: this.chosen ? Math.max(0, Math.min(this.span - 1, this.chosen.column + step[0])) : 0, line: rows[at].from });
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** row is the row of the chosen cell, or -1. */
  row() { return this.chosen ? this.drawn.rows.findIndex((row) => row.from <= this.chosen.line && this.chosen.line < row.to) : -1; }

  choose(chosen) {
    if (chosen.line === undefined) return;
    this.chosen = chosen;
    this.show();
  }

  /** show shows the chosen cell: where it is, its figures, and ways to what it is of. */
  show() {
    const r = this.row(), { rows } = this.drawn;
    this.mark.hidden = r < 0;
    if (r < 0) { this.details.replaceChildren(el("p", { class: "note" }, "Choose a cell for its keys and figures: by a click, or with the arrow keys.")); return; }
    const { column } = this.chosen, part = (x) => 100 * x + "%", row = rows[r];
    Object.assign(this.mark.style, { left: part(column / this.span), top: part(r / rows.length), width: part(1 / this.span), height: part(1 / rows.length) });
    const index = this.data.columns.findIndex((c) => c.at - this.first === column), f = row.cells.get(index) || none, seconds = this.data.columns[index]?.seconds || 0;
    const lines = this.view.lines.slice(row.from, row.to), [a, b] = [lines[0], lines[lines.length - 1]], entities = lines.reduce((sum, l) => sum + l.entities, 0);
    this.details.replaceChildren(
      el("h3", null, values.visible(a.from), a.from === b.to ? null : " … " + values.visible(b.to)),
      el("p", { class: "note" }, `${stamp(this.start(column))}, ${this.data.width / 1000} s · ${entities} ${entities === 1 ? "entity" : "entities"} in the samples`),
      facts(metrics.map((name, m) => [name, this.text(this.value(f, seconds, m), m)])), this.ways(lines, column));
  }

  /** ways leads from a cell to its tenant, its dataset and its entity at that time, and to fewer keys. */
  ways(lines, column) {
    const one = (of) => (new Set(lines.map(of)).size === 1 ? of(lines[0]) : ""), tenant = one((l) => l.tenant), dataset = tenant && one((l) => l.dataset), entity = dataset && one((l) => l.entity);
    const node = el("p", { class: "actions" });
    const open = (name, page, set) => el("a", { class: "button", href: "/" + page + "?" + new URLSearchParams(set) }, name);
    if (tenant && !tenant.startsWith("(")) {
      node.append(open("Tenant " + tenant, "fleet", { tenant }));
      const plain = dataset.split("!")[0]; // the rows of heads belong to it, too
      if (plain) node.append(open("Dataset " + plain, "fleet", { tenant, dataset: plain }));
      if (plain && entity) this.entityOf(tenant, plain, entity).then((id) => node.append(open("Entity " + values.nameOf(values.partsOf(id)), "entity", {
        tenant, dataset: plain, entity: id, from: iso(this.start(column) - 30 * this.data.width), to: iso(this.start(column) + 30 * this.data.width) }))).catch(() => {});
    }
    const [from, to] = this.range(), first = lines[0];
    if (to - from > 1 && this.by === 0) node.append(el("button", { type: "button", onclick: () => this.go({ key: lines.length === 1 ? first.from : this.prefixOf(1, first) }) }, "Only these keys"));
    return node;
  }

  /** entityOf returns the text of an entity: a key may begin with a salt. */
  async entityOf(tenant, dataset, entity) {
    if (!this.datasets.has(tenant)) this.datasets.set(tenant, get(`/api/${encodeURIComponent(tenant)}/datasets`));
    const { datasets } = await this.datasets.get(tenant), fields = datasets.find((d) => d.name === dataset).key.length;
    return entity.split("/").slice(-fields).join("/");
  }
}
