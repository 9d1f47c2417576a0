// What the pages entity and compare have in common: charts of fields of entities, live or of a fixed time, with an as-of cursor.
import { follow, query } from "./api.js";
import { absent, eachFrame, el, failed, later, loading, passes, problemLine, state } from "./dom.js";
import { addPoint, addState, readBands, readLines } from "./lines.js";
import { marksMenu, notesOf, thresholdsOf } from "./marks.js";
import { BandPanel, LinePanel } from "./panel.js";
import { entityPicker, livePill } from "./pickers.js";
import { Gutter } from "./plot.js";
import { asOfTable, pointsTable } from "./tables.js";
import { interval, iso, lengthName, span, stamp } from "./time.js";
import { rate, refreshOf, show, timeBar, timeKey } from "./timebar.js";
import { Tip } from "./tip.js";
import * as values from "./values.js";

export class ChartPage {
  constructor(frame, root) {
    this.frame = frame;
    this.root = root;
    this.control = new AbortController();
    this.reading = new AbortController();
    this.panels = [];
    this.h1 = el("h1", { tabindex: "-1" });
    this.head = el("div", { class: "heading" }, this.h1);
    this.draw = eachFrame(() => this.drawNow());
    this.reload = later(150, () => this.load());
    this.start();
  }

  /** Pages say what they are called, which panels they have, from this.fields; what their toolbar has; and what follows their name. */
  name() { return ""; }
  wantedPanels() { return []; }
  tools() { return []; }
  heading() { return []; }

  get entities() { return this.frame.all("entity").slice(0, 12); }
  get at() { return Date.parse(this.frame.get("at") || "") || null; }

  close() {
    this.control.abort();
    this.reading.abort();
    clearInterval(this.clock);
    clearTimeout(this.again);
    for (const panel of this.panels) panel.view.close();
    this.panels = [];
  }

  /** fill replaces all but the heading, which keeps the focus. */
  fill(...nodes) {
    if (this.root.firstChild !== this.head) this.root.prepend(this.head);
    while (this.head.nextSibling) this.head.nextSibling.remove();
    this.root.append(...nodes);
  }

  async start() {
    this.close();
    this.control = new AbortController();
    const { signal } = this.control;
    this.readFor = this.startKey();
    this.view = null;
    this.h1.textContent = this.name();
    while (this.h1.nextSibling) this.h1.nextSibling.remove();
    this.fill(loading("the charts"));
    try {
      const datasets = await this.frame.datasets(signal), name = this.frame.get("dataset") || datasets[0]?.name;
      this.datasets = datasets;
      this.dataset = datasets.find((d) => d.name === name);
      if (!this.entities.length && datasets.length) { this.fill(this.nothingChosen()); return; }
      if (!this.dataset) throw { status: 404 };
      await Promise.all([this.readFields(signal), this.readNewest(signal)]);
      if (!this.newest) { this.fill(this.unknown()); return; }
      this.openAtNewest();
      this.layout();
      await this.load();
      this.watch(signal);
    } catch (problem) {
      if (signal.aborted) return;
      if (problem.status === 404) {
        this.fill(absent(this.frame));
        this.again = setTimeout(() => { this.frame.forget(); this.start(); }, 3000);
        return;
      }
      this.fill(failed(problem, () => this.start()));
      if (passes(problem)) this.again = setTimeout(() => this.start(), 5000);
    }
  }

  nothingChosen() {
    const dataset = this.dataset || this.datasets[0];
    return state("empty", "Choose an entity", "Find one by a part of its name, or mark several in the fleet to compare them.",
      entityPicker(this.frame, dataset.name, "Find an entity", (id) => this.frame.go(null, { dataset: dataset.name, entity: id })),
      el("a", { class: "button primary", href: this.frame.address("fleet") }, "Open the fleet"));
  }

  unknown() {
    const names = this.entities.map((id) => values.nameOf(values.partsOf(id))).join(", ");
    return state("empty", "Unknown entity", `${names}: there are no points of this name in ${this.dataset.name}.`,
      el("a", { class: "button primary", href: this.frame.address("fleet", { dataset: this.dataset.name }) }, "Open the fleet"));
  }

  /** readNewest finds the time of the newest point of all entities; 0 if there is none. */
  async readNewest(signal) {
    const time = iso(Math.max(this.frame.now(), Date.parse(this.frame.get("to") || "") || 0) + 86400000);
    const { rows } = await this.frame.api(this.frame.path(this.dataset.name, "asof"), { entity: this.entities, time }, signal);
    this.newest = rows.reduce((newest, row) => Math.max(newest, row.t), 0);
  }

  /** openAtNewest shows the newest points, if the address names no time and the entities have been silent for longer than the usual range. */
  openAtNewest() {
    const { from, to } = interval(this.frame);
    if (!["from", "to", "range"].some((name) => this.frame.get(name)) && this.newest < from) this.showNewest(to - from, true);
  }

  showNewest(length, replace) { show(this.frame, this.newest - length * .9, this.newest + length * .1, replace); }

  /** readFields finds the fields of all entities. */
  async readFields(signal) {
    const all = await Promise.all(this.entities.map((entity) => this.frame.api(this.frame.path(this.dataset.name, "fields"), { entity }, signal)));
    const byPath = new Map();
    for (const { fields } of all) {
      for (const f of fields) {
        const sum = byPath.get(f.path) || { path: f.path, numbers: 0, states: 0 };
        byPath.set(f.path, { path: f.path, numbers: sum.numbers + f.numbers, states: sum.states + f.states });
      }
    }
    this.fields = [...byPath.values()];
  }

  startKey() { return JSON.stringify([this.frame.get("dataset"), this.entities, this.frame.all("field")]); }

  layout() {
    this.pill = livePill();
    this.stream = ["connecting"];
    this.bar = el("div", { class: "toolbar" });
    this.note = el("p", { class: "note source", role: "status" });
    this.nodata = el("div", { class: "place", role: "status" });
    this.charts = el("div", { class: "charts card" });
    this.below = el("div", { class: "below" });
    while (this.h1.nextSibling) this.h1.nextSibling.remove();
    this.rate = el("span", { class: "rate" });
    this.head.append(...this.heading(), this.rate, this.pill.node);
    this.fill(this.bar, this.nodata, this.charts, this.note, this.below);
    this.table = pointsTable(this);
    this.asOf = asOfTable(this);
    this.build();
  }

  /** build makes the panels. */
  build() {
    for (const panel of this.panels) panel.view.close();
    this.loaded = null;
    this.panels = this.wantedPanels().map((p) => ({ ...p, data: p.bands ? [] : p.lines.map(() => ({ t: [], v: [] })) }));
    this.show();
    if (!this.panels.length) this.charts.append(state("empty", "No numbers", "The newest points of this entity have no field that can be drawn. The table shows what they have."));
  }

  /** show makes the views of the panels, in the colours of the theme. */
  show() {
    this.charts.replaceChildren();
    this.tip = new Tip(this.charts, () => this.panels.map((panel) => panel.view));
    this.gutter = new Gutter();
    const on = {
      gutter: this.gutter, hover: this.tip.draw, isolate: (id, more) => this.isolate(id, more),
      zoom: (from, to) => show(this.frame, from, to), pin: (at) => this.frame.go(null, { at: iso(at) }, true),
    };
    this.panels.forEach((panel, i) => {
      panel.view?.close();
      const options = { ...panel, last: i === this.panels.length - 1 };
      panel.view = panel.bands ? new BandPanel(this.charts, options, on) : new LinePanel(this.charts, options, on);
      panel.view.first = i === 0;
    });
  }

  /** isolate shows only the line of an entity, or all again; more adds it to those that are shown. */
  isolate(id, more) {
    const now = this.frame.all("only"), has = now.includes(id);
    const only = more ? (has ? now.filter((other) => other !== id) : [...now, id]) : has && now.length === 1 ? [] : [id];
    this.frame.go(null, { only }, true);
  }

  renderBar() {
    this.barKey = this.marksKey();
    const shown = this.frame.get("view") === "table", file = this.csvAddress();
    this.rate.replaceChildren(rate(this.frame));
    this.bar.replaceChildren(timeBar(this.frame), ...this.tools(), marksMenu(this.frame, [...new Set(this.panels.flatMap((panel) => panel.lines || []).map((line) => line.field))]),
      el("span", { class: "spacer" }),
      el("button", { type: "button", "aria-pressed": String(shown), onclick: () => this.frame.go(null, { view: shown ? null : "table", cursor: null }) }, "Table"),
      el("a", { class: "button", href: file, download: "" }, "CSV"));
  }

  csvAddress() {
    const { from, to } = this.view;
    return "/api/" + encodeURIComponent(this.frame.tenant) + this.frame.path(this.dataset.name, "csv") +
      query({ entity: this.entities, field: this.fields.map((f) => f.path).slice(0, 32), from: iso(from), to: iso(to) });
  }

  columns() { return Math.max(100, Math.min(4000, Math.round((this.charts.clientWidth || 800) - 80))); }

  /** load reads what the address names. What was read before stays in sight until then. */
  async load() {
    this.reading.abort();
    this.reading = new AbortController();
    const signal = AbortSignal.any([this.control.signal, this.reading.signal]);
    this.view = { ...interval(this.frame), at: this.at };
    this.loadKey = this.timeKey();
    this.renderBar();
    clearTimeout(this.again);
    const table = this.frame.get("view") === "table";
    this.charts.hidden = table;
    this.root.classList.add("busy");
    this.arrived = []; // by the stream while the charts are read, which may be older
    try {
      if (table) await this.table.load(signal);
      else await Promise.all([this.loadPanels(signal), this.asOf.load(signal)]);
      this.problem = null;
      this.failures = 0;
      this.nodata.replaceChildren();
    } catch (problem) {
      if (signal.aborted) return;
      this.showProblem(problem);
      this.failures = passes(problem) ? (this.failures || 0) + 1 : 0;
    } finally {
      if (!signal.aborted) {
        this.root.classList.remove("busy");
        this.arrived = null;
        if (!table) this.showEmpty();
      }
    }
    if (signal.aborted) return;
    if (this.failures) this.again = setTimeout(() => this.load(), Math.min(60000, 5000 * this.failures));
    else if (this.view.live && refreshOf(this.frame) < Infinity) this.again = setTimeout(() => this.load(), Math.max(60000, refreshOf(this.frame), (this.view.to - this.view.from) / 20));
  }

  /** showProblem says where the charts are that they are old, until a later reading succeeds. */
  showProblem(problem) {
    this.problem = problem;
    this.nodata.replaceChildren(problemLine(problem, () => this.load()));
  }

  async loadPanels(signal) {
    const columns = this.columns(), sources = new Set(), { arrived } = this;
    const lines = Map.groupBy(this.panels.flatMap((panel) => panel.lines || []), (line) => line.entity);
    const problems = new Map(); // by panel
    const of = async (panels, read) => {
      try {
        await read();
      } catch (problem) {
        if (signal.aborted || passes(problem)) throw problem;
        for (const panel of panels) problems.set(panel, problem);
      }
    };
    await Promise.all([
      ...[...lines].map(([entity, all]) => of(this.panels.filter((panel) => panel.lines?.some((line) => line.entity === entity)), async () => {
        const answer = await readLines(this.frame, this.dataset.name, entity, all.map((line) => line.field), this.view, columns, signal);
        all.forEach((line, i) => {
          const data = answer.lines[i];
          Object.assign(line, { gap: answer.gap_ms, data });
          sources.add((data.rollup ? "the rollup " + data.rollup : "the points") + (answer.window_ms ? `: mean, lowest and highest of each ${span(answer.window_ms)}` : ""));
        });
      })),
      ...this.panels.filter((panel) => panel.bands).map((panel) => of([panel], async () => {
        const answer = await readBands(this.frame, this.dataset.name, panel.bands, this.view, columns, signal);
        panel.bands.gap = answer.gap_ms;
        panel.bands.points = answer.points; // a band may go on without any
        panel.data = answer.bands;
      })),
    ]);
    for (const panel of this.panels) {
      if (panel.lines) panel.data = panel.lines.map((line) => line.data || { t: [], v: [] });
      panel.problem = problems.get(panel);
      panel.view.fail(panel.problem, () => this.load());
    }
    this.loaded = this.loadKey;
    for (const [row, fields] of arrived) this.addRow(row, fields);
    this.below.replaceChildren(this.asOf.node);
    if (this.panels.length) this.note.textContent = `Read from ${[...sources].join(" and ") || "the points"}.`;
    this.drawNow();
  }

  drawNow() {
    if (!this.view || this.charts.hidden || this.panels.some((p) => p.view.dragging) || this.control.signal.aborted) return;
    if (this.view.live && this.due()) { Object.assign(this.view, interval(this.frame)); this.drawn = Date.now(); }
    Object.assign(this.view, { complete: this.loaded === this.loadKey, at: this.at, only: this.frame.all("only"), thresholds: thresholdsOf(this.frame), notes: notesOf(this.frame) });
    for (const panel of this.panels) panel.view.set(panel.data, this.view);
    this.gutter.settle(this.panels.map((panel) => panel.view.plot));
    this.tip.draw();
    this.showEmpty();
  }

  /** due reports whether it is time to draw a live chart again. */
  due() { return Date.now() - (this.drawn || 0) >= refreshOf(this.frame); }

  /** showEmpty says that the time has no points, and leads to the newest one. */
  showEmpty() {
    const { from, to } = this.view;
    const drawn = (panel) => (panel.bands ? panel.bands.points > 0 : panel.data.some((line) => line.t.some((t, i) => t >= from && t < to && line.v[i] !== null)));
    const empty = this.panels.length > 0 && !this.root.classList.contains("busy") && !this.panels.some(drawn);
    if (this.problem) return; // it stands there
    if (!empty) { this.nodata.replaceChildren(); return; }
    if (this.nodata.firstChild) return;
    this.nodata.append(el("p", { class: "nodata" }, `No points in this ${lengthName(Math.round(to - from))}. Newest: ${stamp(Math.floor(this.newest / 1000) * 1000)}`,
      el("button", { type: "button", onclick: () => this.showNewest(to - from) }, "Show it")));
  }

  watch(signal) {
    const fields = [...new Set(this.panels.flatMap((p) => (p.bands ? [p.bands] : p.lines).map((line) => line.field)))];
    let since = this.view.to;
    follow("/api/" + encodeURIComponent(this.frame.tenant) + this.frame.path(this.dataset.name, "live"),
      () => ({ entity: this.entities, field: fields, since: iso((this.view.live ? Math.min(since, this.frame.now()) : this.frame.now()) - 1000) }), { // a fixed time shows no new points
        open: (data) => { this.frame.clock(data.now); },
        points: (rows) => {
          for (const row of rows) { this.newest = Math.max(this.newest, row.t); since = Math.max(since, row.t); this.addRow(row, fields); this.arrived?.push([row, fields]); }
          this.seen?.(rows);
          if (this.view.live && !refreshOf(this.frame)) this.draw();
        },
        missed: () => this.reload(),
        state: (text, problem) => {
          this.stream = [text, problem];
          this.showPill();
          if (text === "live" && (this.problem || this.panels.some((panel) => panel.problem))) this.reload();
        },
      }, signal);
    this.clock = setInterval(() => {
      if (!this.view?.live || document.hidden) return;
      if (this.due()) this.draw();
      this.showAge?.();
    }, 1000);
  }

  /** showPill shows the state of the stream. What is live does not matter to a fixed time. */
  showPill() {
    const [text, problem] = this.stream;
    this.pill.set(text !== "live" ? text : !interval(this.frame).live ? "fixed" : refreshOf(this.frame) === Infinity ? "paused" : text, problem);
  }

  addRow(row, fields) {
    if (!this.view.live) return;
    for (const panel of this.panels) {
      if (panel.bands) {
        if (panel.bands.entity !== row.id) continue;
        panel.bands.points++;
        addState(panel.data, row.t, row.v[fields.indexOf(panel.bands.field)], panel.bands.gap);
        continue;
      }
      panel.lines.forEach((line, i) => {
        if (line.entity === row.id) addPoint(panel.data[i], row.t, row.v[fields.indexOf(line.field)], line.gap);
      });
    }
  }

  timeKey() { return JSON.stringify(["range", "from", "to", "view", "cursor", "order", "refresh"].map((name) => this.frame.get(name))); }

  update(reason) {
    if (this.readFor !== this.startKey()) { this.start(); return; }
    if (!this.view) return;
    if (reason === "theme" && this.panels.length) { this.show(); this.drawNow(); return; }
    if (this.loadKey !== this.timeKey()) { this.load(); this.showPill(); return; }
    if (this.barKey !== this.marksKey()) this.renderBar();
    this.asOf.load(this.control.signal).catch((problem) => { if (!this.control.signal.aborted) this.showProblem(problem); });
    this.drawNow();
  }

  marksKey() { return JSON.stringify(["threshold", "note"].map((name) => this.frame.all(name))); }

  key(event) { return this.view ? timeKey(this.frame, event) : false; }
}
