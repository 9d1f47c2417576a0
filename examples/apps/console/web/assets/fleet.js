// The page fleet: the entities that a search and a filter choose, live, the silent ones first or in the order of a column.
import { follow } from "./api.js";
import { absent, eachFrame, el, failed, later, loading, say, state } from "./dom.js";
import { FleetTable, absentAt, sortName, timeAt } from "./fleettable.js";
import { equals, has, matches, named, order, toggled, uses } from "./filter.js";
import { datasetPicker, fieldMenu, livePill } from "./pickers.js";
import { parseSpan } from "./time.js";
import { shownTheme, stateColour } from "./theme.js";
import * as values from "./values.js";

export const title = "Fleet";
export const keys = [
  ["/", "search"], ["w", "filter"], ["j, ↓ and k, ↑", "the next and the previous entity"], ["Enter", "open the entity"],
  ["x", "choose the entity, to compare it"], ["c", "compare those that are chosen"],
];

const columns = 6, firstColumns = 4, narrow = matchMedia("(max-width: 760px)"), silences = ["1m", "5m", "15m", "1h", "6h", "1d", "7d"], maxPicked = 12;

export const open = (frame, root) => new Fleet(frame, root);

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
    this.start();
  }

  close() {
    this.stop();
    narrow.removeEventListener("change", this.narrow);
  }

  stop() {
    this.control.abort();
    clearInterval(this.clock);
    this.lists = { asked: 0, shown: 0, running: 0, arrived: new Map() }; // readings, and what the stream brings meanwhile
    this.view?.close();
    this.view = null;
  }

  get list() { return this.view?.list; }
  get grid() { return this.view?.grid; }
  get silentAfter() { return parseSpan(this.frame.get("silent")) || parseSpan("5m"); }
  get picked() { return this.frame.all("pick"); }
  get where() { return this.frame.get("where") || ""; }
  get kept() { return "columns " + this.frame.tenant + " " + this.dataset.name; }

  /** start shows the dataset of the address, from the beginning. */
  async start() {
    this.stop();
    this.control = new AbortController();
    const { signal } = this.control;
    this.rows.clear();
    this.root.replaceChildren(loading("the datasets"));
    try {
      const datasets = await this.frame.datasets(signal);
      const dataset = this.frame.get("dataset") || datasets[0]?.name;
      this.dataset = datasets.find((d) => d.name === dataset);
      if (!this.dataset) throw { status: 404 };
      this.startFor = this.startKey();
      this.partial = false;
      this.frameOf(datasets);
      if (this.dataset.problem) {
        this.body.replaceChildren(state("empty", "Not readable", this.dataset.problem));
        return;
      }
      await this.read();
    } catch (problem) {
      if (signal.aborted) return;
      if (problem.status === 404) {
        this.root.replaceChildren(absent(this.frame));
        const timer = setTimeout(() => { this.frame.forget(); this.start(); }, 3000); // to look for the first point
        signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
        return;
      }
      (this.body || this.root).replaceChildren(failed(problem, () => this.start()));
    }
  }

  /** read reads the list of the address, and follows it. The toolbar stays. */
  async read() {
    this.stop();
    this.control = new AbortController();
    const { signal } = this.control;
    this.rows.clear();
    this.body.replaceChildren(loading("the newest points"));
    this.notes.replaceChildren();
    this.readFor = this.listKey();
    try {
      await this.load(signal, true);
    } catch (problem) {
      if (signal.aborted) return;
      if (problem.status === 404) throw problem;
      const wrong = problem.status === 400 && this.where;
      this.body.replaceChildren(wrong ? state("failed", "This filter cannot be read", problem.message) : failed(problem, () => this.read()));
      this.filterBox.setAttribute("aria-invalid", String(Boolean(wrong)));
      return;
    }
    this.filterBox.removeAttribute("aria-invalid");
    this.watch(signal);
    this.clock = setInterval(() => { this.sort(); this.readSometimes(signal); }, 5000);
  }

  /** readSometimes reads a filtered list again, where entities that it does not have may have come to match. */
  readSometimes(signal) {
    const wait = this.missing ? 10000 : uses(this.filter, "silent") ? 30000 : Infinity;
    if (!document.hidden && Date.now() - this.readAt > wait) this.load(signal, false).catch(() => {});
  }

  startKey() { return JSON.stringify([this.frame.get("dataset"), this.frame.tenant]); }

  /** listKey is what the list is read for; other parameters change only what is shown of it. Of a list that was cut, the server looks behind its end. */
  listKey() {
    return JSON.stringify([this.prefix(), this.frame.all("field"), this.where, this.where && this.frame.get("silent"), this.partial && [this.frame.get("q"), this.frame.get("sort")]]);
  }

  /** prefix returns the key fields that the search has up to its last slash. */
  prefix() {
    const parts = (this.frame.get("q") || "").split("/").slice(0, -1);
    return parts.length < this.dataset.key.length && parts.every(Boolean) ? parts.map((p) => values.partsOf(p)[0]) : [];
  }

  frameOf(datasets) {
    this.search = el("input", {
      type: "search", placeholder: "Search: part of " + this.dataset.key.map((f) => f.name).join("/"), "aria-label": "Search by part of a name",
      value: this.frame.get("q") || "", maxlength: 500, spellcheck: "false", autocomplete: "off",
      oninput: later(200, () => this.frame.go("fleet", { q: this.search.value || null }, true)),
      onkeydown: (event) => {
        if (event.key === "Enter" || event.key === "ArrowDown") { event.preventDefault(); this.grid?.focus(); this.move(0); }
      },
    });
    this.names = el("datalist", { id: "filter-names" });
    this.filterBox = el("input", {
      type: "search", class: "filter", placeholder: "Filter: silent > 10m", "aria-label": "Filter by values", list: "filter-names",
      value: this.where, maxlength: 1000, spellcheck: "false", autocomplete: "off",
      title: "Compare with < <= > >= = != or ~ (contains); join with and, or, not and ( ). A field alone: it is set. fault now: in the newest point. silent > 10m: no point for longer.",
      onchange: () => this.frame.go("fleet", { where: this.filterBox.value.trim() || null }),
      onkeydown: (event) => { if (event.key === "Enter") event.target.dispatchEvent(new Event("change")); },
    });
    const silent = el("select", {
      "aria-label": "Silent after", onchange: (event) => this.frame.go("fleet", { silent: event.target.value }),
    }, silences.map((s) => el("option", { value: s, selected: parseSpan(s) === this.silentAfter }, "silent after " + s)));
    this.columnsMenu = el("span");
    this.sorting = el("select", { class: "sorting", "aria-label": "Sort by", onchange: (event) => this.frame.go("fleet", { sort: event.target.value || null }) });
    this.pill = livePill();
    this.count = el("span", { class: "count", role: "status" });
    this.compare = el("a", { class: "button", hidden: true });
    this.top = el("select", {
      "aria-label": "Compare the first entities of the list",
      onchange: (event) => this.frame.go("compare", { dataset: this.dataset.name, entity: this.order.slice(0, event.target.value).map((row) => row.id), field: this.compareField() }),
    }, el("option", { value: "" }, "Compare top…"), [2, 3, 5, 8, maxPicked].map((n) => el("option", { value: n }, `the first ${n}`)));
    this.states = el("div", { class: "states", role: "group", "aria-label": "Entities by state" });
    this.notes = el("div", { class: "notes", role: "status" });
    this.body = el("div", { class: "fleet-body" }, loading("the newest points"));
    this.root.replaceChildren(
      el("h1", { class: "hidden" }, "Fleet"),
      el("div", { class: "toolbar" }, datasetPicker(this.frame, datasets, this.dataset.name), this.search, this.filterBox, this.names, silent, this.columnsMenu, this.sorting, this.top, this.compare,
        el("span", { class: "spacer" }), this.count, this.pill.node),
      this.states, this.notes, this.body);
  }

  /** compareField is the column of the order, or the first one with numbers. */
  compareField() {
    const sorted = this.shownFields.find((field) => (this.frame.get("sort") || "").replace(/^-/, "") === sortName(field));
    return [sorted, ...this.shownFields].find((field) => this.fields.find((f) => f.path === field)?.numbers);
  }

  async load(signal, first) {
    const path = (name) => this.frame.path(this.dataset.name, name), part = this.prefix();
    const list = () => this.readList(path("latest"), part, signal);
    if (!await (first ? this.loadFirst(this.frame.api(path("fields"), { part }, signal), list) : list())) return;
    if (this.more && !this.where) await this.loadSilent(signal, path("silent"), part);
    if (first) this.table();
    this.tell();
    this.sort();
  }

  /** loadFirst asks for the list while the fields are read, with the columns of the address or those shown last. If the fields name others, it asks again. */
  async loadFirst(reading, list) {
    const guess = this.frame.all("field").slice(0, columns), shown = "shown " + this.kept;
    this.shownFields = guess.length ? guess : JSON.parse(localStorage.getItem(shown) || "[]");
    const before = String(this.shownFields), early = before ? list() : null;
    [{ fields: this.fields }] = await Promise.all([reading, early]);
    this.chooseColumns();
    localStorage.setItem(shown, JSON.stringify(this.shownFields));
    return before === String(this.shownFields) ? early ?? list() : list();
  }

  /** chooseColumns shows the columns of the address, or else those that were chosen last, which the address then has. */
  chooseColumns() {
    const wanted = this.frame.all("field"), kept = JSON.parse(localStorage.getItem(this.kept) || "[]");
    if (!wanted.length && kept.some((field) => this.fields.some((f) => f.path === field))) {
      history.replaceState(null, "", this.frame.address("fleet", { field: kept }));
      this.readFor = this.listKey();
    }
    this.shownFields = values.choose(this.fields, this.frame.all("field"), this.frame.all("field").length ? columns : firstColumns);
  }

  /** readList reads the list, and reports whether it is shown: an older answer never replaces a newer one. */
  async readList(path, part, signal) {
    const { lists } = this, turn = ++lists.asked;
    lists.running++;
    try {
      const answer = await this.frame.api(path, { part, field: this.shownFields, ...this.chosen() }, signal);
      if (turn < lists.shown) return false;
      lists.shown = turn;
      this.frame.clock(answer.now);
      this.readAt = Date.now();
      this.missing = false;
      this.more = answer.more;
      if (!this.partial && (answer.more || answer.matched > answer.rows.length)) {
        this.partial = true;
        this.readFor = this.listKey();
        if (this.frame.get("q")) return this.readList(path, part, signal);
      }
      this.answer = { ...answer, rows: null };
      this.filter = answer.filter;
      this.rows = new Map(answer.rows.map((row) => [row.id, prepare(row)]));
      this.put(lists.arrived.values());
      return true;
    } finally {
      if (--lists.running === 0) lists.arrived.clear();
    }
  }

  /** chosen are the parameters by which the server chooses rows. A search by name is one of them where the page does not have all entities. */
  chosen() {
    const q = this.partial && (this.frame.get("q") || "").replaceAll('"', ""), name = q ? `name ~ "${q}"` : "";
    return { where: [name, name && this.where ? `(${this.where})` : this.where].filter(Boolean).join(" and ") || null, silent: this.where ? this.frame.get("silent") : null, sort: this.frame.get("sort") };
  }

  /** loadSilent adds the longest silent ones of all entities, of which the list has only the first 10,000. */
  async loadSilent(signal, path, part) {
    const since = new Date(this.frame.now() - this.silentAfter).toISOString();
    const { rows } = await this.frame.api(path, { part, since, limit: 1000 }, signal);
    for (const row of rows) if (!this.rows.has(row.id)) this.rows.set(row.id, prepare(row));
  }

  table() {
    this.columnsMenu.replaceChildren(fieldMenu("Columns", this.fields, this.shownFields, columns, (field) => {
      localStorage.setItem(this.kept, JSON.stringify(field));
      this.frame.go("fleet", { field });
    }));
    const number = this.fields.find((f) => f.numbers && f.path !== "."), name = (f) => named(f.path, this.dataset.key.map((k) => k.name));
    if (number) this.filterBox.placeholder = `Filter: ${name(number)} < 20 and silent > 10m`;
    this.names.replaceChildren(...["silent > 10m", ...this.fields.flatMap((f) => (f.states > f.numbers ? [name(f), name(f) + " now"] : [name(f)]))].map((value) => el("option", { value })));
    const sorts = [["", "silent first"], ["name", "name"], ["-age", "oldest point first"], ...this.shownFields.flatMap((f) => [[sortName(f), values.label(f) + " ▲"], ["-" + sortName(f), values.label(f) + " ▼"]])];
    this.sorting.replaceChildren(...sorts.map(([value, text]) => el("option", { value, selected: value === (this.frame.get("sort") || "") }, text)));
    this.view?.close();
    this.view = new FleetTable(this, narrow.matches);
    this.body.replaceChildren(this.view.node);
    this.view.show();
  }

  /** tell says what the list does not have. */
  tell() {
    const { looked, last, more, cut, never, rows, matched } = { ...this.answer, rows: this.rows.size };
    const all = [
      more ? `The server looked at the first ${looked} entities, up to ${values.nameOf(values.partsOf(last))}. It left out those behind it: search for a prefix, such as ${this.dataset.key[0].name}/.` : "",
      this.where && matched > rows ? `${matched} entities match; the list has ${rows} of them.` : "",
      cut ? `Of ${cut} of ${looked} entities only the newest points were searched: a value that only older ones have is missing here.` : "",
      never?.length ? `No entity has a field ${never.join(", ")}.` : "",
    ];
    this.notes.replaceChildren(...all.filter(Boolean).map((text) => el("p", { class: "note" }, text)));
  }

  isSilent(row) { return this.frame.now() - row.t > this.silentAfter; }

  sort() {
    if (!this.list) return;
    const text = (this.frame.get("q") || "").toLowerCase(), before = this.order[this.at]?.id, now = this.frame.now();
    const found = [...this.rows.values()].filter((row) => (!text || row.text.includes(text)) && this.chooses(row, now));
    const silent = found.filter((row) => this.isSilent(row));
    this.order = this.sorted(found, silent);
    this.at = before ? this.order.findIndex((row) => row.id === before) : -1;
    this.pickedSet = new Set(this.picked);
    this.count.textContent = `${silent.length} silent of ${found.length}` + (this.where ? ` that match, of ${this.answer.looked}` : "");
    this.top.hidden = found.length < 2 || this.pickedSet.size > 0;
    this.top.value = "";
    this.compare.hidden = this.pickedSet.size < 2;
    this.compare.textContent = `Compare ${this.pickedSet.size}`;
    this.compare.href = this.compareAddress();
    this.grid.setAttribute("aria-rowcount", found.length + 1);
    this.grid.classList.toggle("nothing", !found.length);
    this.grid.dataset.nothing = this.where ? "No entity matches the filter." : this.rows.size ? "No entity has this text in its name." : "No entity has a point here.";
    this.showStates(found);
    this.view.theme = shownTheme();
    this.list.set(this.order);
    this.active();
  }

  /** sorted puts the silent ones first, or orders by what the address names. */
  sorted(found, silent) {
    const sort = this.frame.get("sort") || "", down = sort.startsWith("-"), by = down ? sort.slice(1) : sort, i = this.shownFields.findIndex((field) => sortName(field) === by);
    const byName = (a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0);
    if (by === "age") return found.sort((a, b) => (down ? a.t - b.t : b.t - a.t) || byName(a, b));
    if (by === "name") return found.sort((a, b) => (down ? byName(b, a) : byName(a, b)));
    if (i >= 0) return found.sort((a, b) => order(a.v[i], b.v[i], down) || byName(a, b));
    const late = new Set(silent);
    return [...silent.sort((a, b) => a.t - b.t || byName(a, b)), ...found.filter((row) => !late.has(row)).sort(byName)];
  }

  /** chooses reports whether the filter of the server still chooses a row. */
  chooses(row, now) {
    row.chosen = !this.filter || matches(this.filter, row, this.answer.fields, now - row.t, true);
    return row.chosen;
  }

  /** showStates counts the states of two columns, each of which is a filter. */
  showStates(found) {
    const most = 8, keys = this.dataset.key.map((f) => f.name);
    const fields = this.shownFields.filter((path) => { const f = this.fields.find((one) => one.path === path); return f?.states > f?.numbers; }).slice(0, 2);
    const bars = fields.map((field) => {
      const i = this.shownFields.indexOf(field), groups = Map.groupBy(found.filter((row) => !absentAt(row, i)), (row) => values.text(row.v[i]));
      const all = [...groups].map(([name, rows]) => [name, rows.length, rows.filter((row) => timeAt(row, i) === row.t).length]).sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
      return [field, all.slice(0, most), all.length - most];
    }).filter(([, all]) => all.length);
    const shown = JSON.stringify([bars, this.where, shownTheme()]);
    if (shown === this.statesShown && this.states.firstChild) return;
    this.statesShown = shown;
    this.states.replaceChildren(...bars.flatMap(([field, all, rest]) => [el("span", { class: "note" }, values.label(field)), ...all.map(([name, n, now]) => {
      const comparison = equals(field, name, keys), mark = el("b", { class: "mark", "aria-hidden": "true" });
      mark.style.background = stateColour(name);
      return el("button", { type: "button", class: "chip", "aria-pressed": String(has(this.where, comparison)), onclick: () => this.frame.go("fleet", { where: toggled(this.where, comparison) }) },
        mark, name, el("span", { class: "note", title: "Entities with this as their newest value, and how many have it in their newest point" }, now < n ? `${n}, ${now} now` : String(n)));
    }), rest > 0 ? el("span", { class: "note" }, `and ${rest} more`) : null].filter(Boolean)));
  }

  /** watch follows the list. It is read again when the stream opens, so that nothing is missed between the two. */
  watch(signal) {
    follow("/api/" + encodeURIComponent(this.frame.tenant) + this.frame.path(this.dataset.name, "live"),
      () => ({ part: this.prefix(), field: this.answer.fields }), {
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
    const now = this.frame.now();
    for (const row of rows) {
      const old = this.rows.get(row.id);
      this.view?.add(row);
      if (!old) { if (this.begins(row, now)) changed = true; continue; }
      if (row.t < old.t) { if (merge(old, row)) changed = true; continue; }
      changed ||= this.isSilent(old) !== this.isSilent(row);
      const before = { t: old.t, v: old.v, at: old.at };
      Object.assign(old, { t: row.t, v: [...row.v], at: row.at && [...row.at], bad: row.bad });
      merge(old, before);
      if (this.filter) { const was = old.chosen; changed ||= was !== this.chooses(old, now); }
    }
    if (changed) this.resort();
    this.redraw();
  }

  /** begins adds the row of an entity that the list does not have, if the filter chooses it. */
  begins(row, now) {
    const chosen = matches(this.filter, row, this.answer.fields, now - row.t, false);
    if (this.filter && (chosen === null || chosen && row.v.some((_, i) => absentAt(row, i)))) this.missing = true; // the list is read again soon
    if (!chosen || this.rows.size >= 11000) return false;
    this.rows.set(row.id, prepare(row));
    return true;
  }

  update() {
    if (!this.dataset || !this.body || this.startFor !== this.startKey()) { this.start(); return; }
    for (const [box, value] of [[this.search, this.frame.get("q") || ""], [this.filterBox, this.where]]) if (document.activeElement !== box || box === this.filterBox) box.value = value;
    if (this.readFor !== this.listKey()) { this.read().catch(() => this.start()); return; }
    if (this.sortFor !== this.frame.get("sort") && this.view) { this.sortFor = this.frame.get("sort"); this.table(); }
    this.sort();
  }

  pick(row) {
    const picked = this.picked, has = picked.includes(row.id);
    if (!has && picked.length === maxPicked) { say(`At most ${maxPicked} entities can be compared`); return; }
    this.frame.go("fleet", { pick: has ? picked.filter((id) => id !== row.id) : [...picked, row.id] }, true);
    say(values.nameOf(row.parts) + (has ? " is no longer chosen" : " is chosen"));
  }

  compareAddress() { return this.frame.address("compare", { dataset: this.dataset.name, entity: this.picked, field: this.compareField() }); }
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
    if (event.key === "w" && this.filterBox) { this.filterBox.focus(); return true; }
    if (!this.list) return false;
    const row = this.order[this.at], view = Math.floor(this.grid.clientHeight / this.list.rowHeight);
    const onControl = event.target.closest?.("a, button, select, summary"); // which Enter and the space bar use
    const steps = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: view, PageUp: -view, Home: -Infinity, End: Infinity };
    if (event.key in steps) this.move(steps[event.key]);
    else if (event.key === "/") this.search.focus();
    else if (event.key === "Enter" && row && !onControl) this.openEntity(row);
    else if ((event.key === "x" || event.key === " " && !onControl) && row) this.pick(row);
    else if (event.key === "c" && this.picked.length > 1) this.frame.go("compare", { dataset: this.dataset.name, entity: this.picked, field: this.compareField() });
    else return false;
    return true;
  }
}

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
  return { ...row, text: row.parts.join("/").toLowerCase() };
}
