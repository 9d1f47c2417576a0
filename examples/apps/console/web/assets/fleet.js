// The page fleet: the entities below a prefix, live, the silent ones first.
import { follow } from "./api.js";
import { absent, eachFrame, el, failed, later, loading, say, state } from "./dom.js";
import { datasetPicker, fieldMenu, livePill } from "./pickers.js";
import { Sparks } from "./sparks.js";
import { both, parseSpan, span } from "./time.js";
import { VirtualList } from "./virtual.js";
import * as values from "./values.js";

export const title = "Fleet";
export const keys = [
  ["/", "search"], ["j, ↓ and k, ↑", "the next and the previous entity"], ["Enter", "open the entity"],
  ["x", "choose the entity, to compare it"], ["c", "compare those that are chosen"],
];

const columns = 4, narrow = matchMedia("(max-width: 760px)"), silences = ["1m", "5m", "15m", "1h", "6h", "1d", "7d"], maxPicked = 12;

export function open(frame, root) {
  const page = new Fleet(frame, root);
  page.start();
  return page;
}

class Fleet {
  constructor(frame, root) {
    this.frame = frame;
    this.root = root;
    this.rows = new Map(); // by ID
    this.order = [];
    this.at = -1; // the row that the keys move
    this.control = new AbortController();
    this.redraw = eachFrame(() => this.list?.draw());
    this.resort = later(400, () => this.sort());
    this.narrow = () => { if (this.list) this.table(); this.sort(); };
    narrow.addEventListener("change", this.narrow);
  }

  close() {
    this.stop();
    narrow.removeEventListener("change", this.narrow);
  }

  stop() {
    this.control.abort();
    clearInterval(this.clock);
    this.lists = { asked: 0, shown: 0, running: 0, arrived: new Map() }; // readings, and what the stream brings meanwhile
    this.list?.close();
    this.list = null;
  }

  get silentAfter() { return parseSpan(this.frame.get("silent")) || parseSpan("5m"); }
  get picked() { return this.frame.all("pick"); }

  /** start shows the dataset of the address, from the beginning. */
  async start() {
    this.stop();
    this.control = new AbortController();
    const { signal } = this.control;
    this.rows.clear();
    this.root.replaceChildren(loading("the datasets"));
    try {
      const datasets = await this.frame.datasets(signal);
      if (!datasets.length) {
        this.root.replaceChildren(state("empty", "No data yet",
          `The tenant ${this.frame.tenant} has no points. They appear here as soon as the first one is stored.`));
        this.startLater(signal);
        return;
      }
      const dataset = this.frame.get("dataset") || datasets[0].name;
      this.dataset = datasets.find((d) => d.name === dataset);
      if (!this.dataset) throw { status: 404 };
      this.frameOf(datasets);
      if (this.dataset.problem) {
        this.body.replaceChildren(state("empty", "Not readable", this.dataset.problem));
        return;
      }
      this.readFor = this.listKey();
      await this.load(signal, true);
      this.watch(signal);
      this.clock = setInterval(() => this.sort(), 5000);
    } catch (problem) {
      if (signal.aborted) return;
      if (problem.status === 404) {
        this.root.replaceChildren(absent(this.frame));
        this.startLater(signal);
        return;
      }
      (this.body || this.root).replaceChildren(failed(problem, () => this.start()));
    }
  }

  /** startLater looks again for a dataset with points. */
  startLater(signal) {
    const timer = setTimeout(() => { this.frame.forget(); this.start(); }, 3000);
    signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  }

  /** listKey is what the list is read for; other parameters change only what is shown of it. */
  listKey() { return JSON.stringify([this.frame.get("dataset"), this.prefix(), this.frame.all("field")]); }

  /** prefix returns the key fields that the search has up to its last slash. */
  prefix() {
    const parts = (this.frame.get("q") || "").split("/").slice(0, -1);
    return parts.length < this.dataset.key.length && parts.every(Boolean) ? parts.map((p) => values.partsOf(p)[0]) : [];
  }

  frameOf(datasets) {
    this.search = el("input", {
      type: "search", placeholder: "Search: " + this.dataset.key.map((f) => f.name).join("/"), "aria-label": "Search by prefix",
      value: this.frame.get("q") || "", maxlength: 500, spellcheck: "false", autocomplete: "off",
      oninput: later(200, () => this.frame.go("fleet", { q: this.search.value || null }, true)),
      onkeydown: (event) => {
        if (event.key === "Enter" || event.key === "ArrowDown") { event.preventDefault(); this.grid?.focus(); this.move(0); }
      },
    });
    const silent = el("select", {
      "aria-label": "Silent after", onchange: (event) => this.frame.go("fleet", { silent: event.target.value }),
    }, silences.map((s) => el("option", { value: s, selected: parseSpan(s) === this.silentAfter }, "silent after " + s)));
    this.columnsMenu = el("span");
    this.pill = livePill();
    this.count = el("span", { class: "count", role: "status" });
    this.compare = el("a", { class: "button", hidden: true });
    this.body = el("div", { class: "fleet-body" }, loading("the newest points"));
    this.root.replaceChildren(
      el("h1", { class: "hidden" }, "Fleet"),
      el("div", { class: "toolbar" }, datasetPicker(this.frame, datasets, this.dataset.name), this.search, silent, this.columnsMenu, this.compare,
        el("span", { class: "spacer" }), this.count, this.pill.node),
      this.body);
  }

  async load(signal, first) {
    const path = (name) => this.frame.path(this.dataset.name, name), part = this.prefix();
    if (first) {
      const { fields } = await this.frame.api(path("fields"), { part }, signal);
      this.fields = fields;
      this.shownFields = values.choose(fields, this.frame.all("field"), columns);
      this.sparkField = values.choose(fields, this.shownFields, 1, "numbers")[0] || fields.find((f) => f.numbers)?.path;
    }
    if (!await this.readList(path("latest"), part, signal)) return;
    if (this.more) await this.loadSilent(signal, path("silent"), part);
    if (first) this.table();
    this.sort();
  }

  /** readList reads the list, and reports whether it is shown: an older answer never replaces a newer one. */
  async readList(path, part, signal) {
    const { lists } = this, turn = ++lists.asked;
    lists.running++;
    try {
      const { rows, more, now } = await this.frame.api(path, { part, field: this.shownFields }, signal);
      if (turn < lists.shown) return false;
      lists.shown = turn;
      this.frame.clock(now);
      this.more = more;
      this.rows = new Map(rows.map((row) => [row.id, prepare(row)]));
      this.put(lists.arrived.values());
      return true;
    } finally {
      if (--lists.running === 0) lists.arrived.clear();
    }
  }

  /** loadSilent adds the longest silent ones of all entities, of which the list has only the first 10,000. */
  async loadSilent(signal, path, part) {
    const since = new Date(this.frame.now() - this.silentAfter).toISOString();
    const { rows } = await this.frame.api(path, { part, since, limit: 1000 }, signal);
    for (const row of rows) if (!this.rows.has(row.id)) this.rows.set(row.id, prepare(row));
  }

  table() {
    this.columnsMenu.replaceChildren(fieldMenu("Columns", this.fields, this.shownFields, columns, (field) => this.frame.go("fleet", { field })));
    const head = el("div", { class: "row head", role: "row", "aria-rowindex": "1" },
      cell("columnheader", "pick", el("span", { class: "hidden" }, "Chosen")), cell("columnheader", "name", this.dataset.key.map((f) => f.name).join(" / ")),
      cell("columnheader", "age", "Last point"), this.placed.map((i) => this.columnHead(i)),
      this.sparkField && !this.shownFields.includes(this.sparkField) ? cell("columnheader", "spark", values.label(this.sparkField)) : null);
    head.id = "fleet-head";
    this.grid = el("div", {
      class: "grid", role: "grid", tabindex: "0", "aria-label": "Entities", "aria-multiselectable": "true", "aria-owns": "fleet-head",
      onkeydown: (event) => { if (this.key(event)) { event.preventDefault(); event.stopPropagation(); } },
    });
    this.body.replaceChildren(el("div", { class: "table columns-" + this.shownFields.length }, head, this.grid));
    this.sparks = new Sparks({
      wanted: () => { if (!this.list) return []; const [from, to] = this.list.range(); return this.order.slice(from, to).map((row) => row.id); },
      load: async (ids, points) => (await this.frame.api(this.frame.path(this.dataset.name, "sparks"),
        { entity: ids, field: this.sparkField, points }, this.control.signal)).sparks,
      changed: this.redraw,
    });
    this.list = new VirtualList(this.grid, narrow.matches ? 58 : 40, {
      make: () => this.makeRow(), fill: (node, row, index) => this.fill(node, row, index),
      seen: () => { if (this.sparkField) this.sparks.look(); },
    });
  }

  /** placed are the numbers of the shown fields as they stand in a row: the field of the line is the last one, next to it. */
  get placed() {
    const all = this.shownFields.map((_, i) => i), spark = this.shownFields.indexOf(this.sparkField);
    return spark < 0 ? all : [...all.filter((i) => i !== spark), spark];
  }

  columnHead(i) {
    const field = this.shownFields[i];
    return cell("columnheader", `value v${i}` + (field === this.sparkField ? " with-spark" : ""), values.label(field));
  }

  makeRow() {
    const node = el("div", { class: "row", role: "row" },
      cell("gridcell", "pick", el("span", { class: "box", "aria-hidden": "true" })), cell("gridcell", "name", el("a", { tabindex: "-1" })),
      cell("gridcell", "age", el("span", { class: "dot", "aria-hidden": "true" }), el("span")),
      this.placed.map((i) => cell("gridcell", "value v" + i)), this.sparkField ? cell("gridcell", "spark", el("canvas", { "aria-hidden": "true" })) : null);
    node.addEventListener("click", (event) => {
      const row = this.order[node.index];
      if (event.target.closest(".pick")) { this.at = node.index; this.pick(row); return; }
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      this.openEntity(row);
    });
    return node;
  }

  fill(node, row, index) {
    node.index = index;
    node.id = "row-" + index;
    const [pick, name, age, ...rest] = node.children, silent = this.isSilent(row), picked = this.pickedSet.has(row.id);
    node.setAttribute("aria-rowindex", index + 2);
    node.setAttribute("aria-selected", picked);
    node.classList.toggle("silent", silent);
    node.classList.toggle("at", index === this.at);
    pick.firstChild.textContent = picked ? "☑" : "☐";
    const link = name.firstChild;
    if (link.of !== row.id) {
      link.of = row.id;
      link.replaceChildren(...row.parts.flatMap((part, i) => [i ? el("i", null, "/") : null, values.visible(part)]).filter(Boolean));
      link.href = this.frame.address("entity", { dataset: this.dataset.name, entity: row.id });
      name.title = row.parts.map(values.visible).join("/");
    }
    set(age.lastChild, span(this.frame.now() - row.t) + (silent ? " silent" : ""));
    age.title = both(row.t);
    this.placed.forEach((i, at) => {
      const text = row.bad && absentAt(row, i) ? "unreadable" : values.text(row.v[i]), older = !absentAt(row, i) && timeAt(row, i) < row.t;
      set(rest[at], older ? `${text} · ${span(this.frame.now() - timeAt(row, i))}` : text);
      rest[at].title = older ? `${text} at ${both(timeAt(row, i))}` : text;
    });
    if (this.sparkField) {
      const spark = rest[rest.length - 1], scale = this.sparks.scale(row.id);
      this.sparks.draw(spark.firstChild, row.id, silent);
      spark.title = scale && `${values.label(this.sparkField)}: ${scale}`;
    }
  }

  isSilent(row) { return this.frame.now() - row.t > this.silentAfter; }

  sort() {
    if (!this.list) return;
    const text = (this.frame.get("q") || "").toLowerCase(), before = this.order[this.at]?.id;
    const found = [...this.rows.values()].filter((row) => matches(row, text));
    const silent = found.filter((row) => this.isSilent(row)).sort((a, b) => a.t - b.t || (a.text < b.text ? -1 : 1));
    const rest = found.filter((row) => !this.isSilent(row)).sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0));
    this.order = silent.concat(rest);
    this.at = before ? this.order.findIndex((row) => row.id === before) : -1;
    this.pickedSet = new Set(this.picked);
    this.count.textContent = `${silent.length} silent of ${found.length}` + (this.more ? " (the first 10,000; search for more)" : "");
    this.compare.hidden = this.pickedSet.size < 2;
    this.compare.textContent = `Compare ${this.pickedSet.size}`;
    this.compare.href = this.compareAddress();
    this.grid.setAttribute("aria-rowcount", found.length + 1);
    this.grid.classList.toggle("nothing", !found.length);
    this.grid.dataset.nothing = this.rows.size ? "No entity begins with this text." : "No entity has a point here.";
    this.list.set(this.order);
    this.active();
  }

  /** watch follows the list. It is read again when the stream opens, so that nothing is missed between the two. */
  watch(signal) {
    follow("/api/" + encodeURIComponent(this.frame.tenant) + this.frame.path(this.dataset.name, "live"),
      () => ({ part: this.prefix(), field: this.shownFields }), {
        open: (data) => { this.frame.clock(data.now); this.load(signal, false).catch(() => {}); },
        points: (rows) => this.add(rows),
        missed: () => this.load(signal, false).catch(() => {}),
        state: (text, problem) => {
          this.pill.set(text, problem);
          if (text === "failed") this.polling = setInterval(() => this.load(signal, false).catch(() => {}), 30000);
          signal.addEventListener("abort", () => clearInterval(this.polling), { once: true });
        },
      }, signal);
  }

  add(rows) {
    const { running, arrived } = this.lists;
    if (running) for (const row of rows) {
      const old = arrived.get(row.id), one = { ...row, v: [...row.v], at: row.at && [...row.at] };
      if (old && row.t < old.t) { merge(old, row); continue; }
      if (old) merge(one, old);
      arrived.set(row.id, one);
    }
    this.put(rows);
  }

  /** put shows rows, unless newer ones are shown. */
  put(rows) {
    let changed = false;
    for (const row of rows) {
      const old = this.rows.get(row.id), i = this.shownFields.indexOf(this.sparkField);
      if (i >= 0 && !absentAt(row, i)) this.sparks.add(row.id, timeAt(row, i), row.v[i]);
      if (old && row.t < old.t) { if (merge(old, row)) changed = true; continue; }
      if (!old && this.rows.size >= 11000) continue;
      changed ||= !old || this.isSilent(old) !== this.isSilent(row);
      if (!old) { this.rows.set(row.id, prepare(row)); continue; }
      const before = { t: old.t, v: old.v, at: old.at };
      Object.assign(old, { t: row.t, v: [...row.v], at: row.at && [...row.at], bad: row.bad });
      merge(old, before);
    }
    if (changed) this.resort();
    this.redraw();
  }

  update() {
    if (!this.dataset || this.readFor !== this.listKey()) {
      const typing = document.activeElement === this.search;
      this.start().then(() => { if (typing) this.search.focus(); });
      return;
    }
    if (document.activeElement !== this.search && this.search) this.search.value = this.frame.get("q") || "";
    this.sort();
  }

  pick(row) {
    const picked = this.picked, has = picked.includes(row.id);
    if (!has && picked.length === maxPicked) { say(`At most ${maxPicked} entities can be compared`); return; }
    this.frame.go("fleet", { pick: has ? picked.filter((id) => id !== row.id) : [...picked, row.id] }, true);
    say(values.nameOf(row.parts) + (has ? " is no longer chosen" : " is chosen"));
  }

  compareAddress() { return this.frame.address("compare", { dataset: this.dataset.name, entity: this.picked }); }
  openEntity(row) { this.frame.go("entity", { dataset: this.dataset.name, entity: row.id }); }

  active() {
    if (this.at >= 0) this.grid.setAttribute("aria-activedescendant", "row-" + this.at);
    else this.grid.removeAttribute("aria-activedescendant");
  }

  move(step) {
    if (!this.order.length) return;
    this.at = Math.max(0, Math.min(this.order.length - 1, this.at < 0 ? 0 : this.at + step));
    this.list.reveal(this.at);
    this.active();
  }

  key(event) {
    if (!this.grid) return false;
    const row = this.order[this.at], view = Math.floor(this.grid.clientHeight / this.list.rowHeight);
    const onControl = event.target.closest?.("a, button, select, summary"); // which Enter and the space bar use
    const steps = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: view, PageUp: -view, Home: -Infinity, End: Infinity };
    if (event.key in steps) this.move(steps[event.key]);
    else if (event.key === "/") this.search.focus();
    else if (event.key === "Enter" && row && !onControl) this.openEntity(row);
    else if ((event.key === "x" || event.key === " " && !onControl) && row) this.pick(row);
    else if (event.key === "c" && this.picked.length > 1) this.frame.go("compare", { dataset: this.dataset.name, entity: this.picked });
    else return false;
    return true;
  }
}

function cell(role, name, ...children) {
  return el("div", { role, class: "cell " + name }, ...children);
}

function set(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const absentAt = (row, i) => row.v[i] === null || row.v[i] === undefined;

/** timeAt returns the time of a value, which may be from an older point than the newest. */
const timeAt = (row, i) => row.at?.[i] ?? row.t;

/** merge sets the values of a row of which another one has newer ones. */
function merge(row, other) {
  let some = false;
  other.v.forEach((v, i) => {
    if (absentAt(other, i) || !absentAt(row, i) && timeAt(row, i) >= timeAt(other, i)) return;
    row.at ||= row.v.map(() => null);
    [row.v[i], row.at[i], some] = [v, timeAt(other, i), true];
  });
  return some;
}

function prepare(row) {
  return { ...row, text: row.parts.join("/"), words: [row.parts.join("/"), ...row.parts].map((part) => part.toLowerCase()) };
}

/** matches reports whether the key, or one of its fields, begins with a text. */
function matches(row, text) {
  return !text || row.words.some((word) => word.startsWith(text));
}
