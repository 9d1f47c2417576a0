// Panels of a chart: lines, and bands of states. All panels of a page have the same time axis and share the cursor.
import uPlot from "./vendor/uplot/uPlot.esm.js";
import { colour, inkOn, series as seriesColour, stateColour } from "./theme.js";
import { el, problemLine, say } from "./dom.js";
import { Legend, StateLegend } from "./legend.js";
import { options, threshold } from "./plot.js";
import { length, stamp } from "./time.js";
import { touch } from "./touch.js";
import { decimals, padded, unitOf, withUnit } from "./units.js";
import * as values from "./values.js";

/** Panel is what lines and bands have alike. on has the functions of the page: zoom, pin, isolate, hover, and its gutter. */
class Panel {
  constructor(root, title, unit, on) {
    this.name = title;
    this.on = on;
    this.view = { from: 0, to: 1, at: null };
    this.place = el("div", {
      class: "plot", tabindex: "0", role: "application", "aria-roledescription": "chart", "aria-label": `${title}: the arrow keys move the cursor`,
      onkeydown: (event) => this.key(event), onblur: () => this.leave(),
    });
    this.header = el("header", null, el("h2", { class: "panel-title" }, title, unit ? el("small", null, " " + unit) : null));
    this.problem = el("div", { class: "place" });
    this.drawn = el("details", { class: "drawn", ontoggle: () => this.list() }, el("summary", null, "Table"), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "What is drawn of " + title }));
    this.node = el("section", { class: "panel", "aria-label": title }, this.header, this.problem, this.place);
    root.append(this.node);
    this.size = new ResizeObserver(() => {
      if (this.plot && this.plot.width !== this.width()) this.plot.setSize({ width: this.width(), height: this.plot.height });
    });
    this.size.observe(this.place);
  }

  /** start begins to react to the mouse. A click that is neither a drag nor a half of a double click sets the as-of cursor. */
  start() {
    const { over, root } = this.plot;
    over.addEventListener("click", (event) => {
      const at = this.plot.posToVal(event.clientX - over.getBoundingClientRect().left, "x");
      clearTimeout(this.pinning);
      if (!this.dragged) this.pinning = setTimeout(() => this.on.pin(at), 250);
    });
    over.addEventListener("mouseenter", () => { this.pointed = true; });
    over.addEventListener("mouseleave", () => { this.pointed = false; this.on.hover(); });
    touch(this, this.on);
    root.setAttribute("role", "img");
  }

  /** fail shows why the panel has no new data; null removes it. */
  fail(problem, again) { this.problem.replaceChildren(...(problem ? [problemLine(problem, again)] : [])); }

  /** dragging reports whether the user is choosing an interval. */
  get dragging() { return this.plot.select.width > 0; }

  /** cursor returns the time below the cursor, or null. */
  get cursor() { return this.plot.cursor.left >= 0 ? this.plot.posToVal(this.plot.cursor.left, "x") : null; }

  width() { return Math.max(120, this.place.clientWidth); }

  moveTo(at) { this.plot.setCursor({ left: this.plot.valToPos(at, "x"), top: this.plot.over.clientHeight / 2 }, true, true); }

  leave() {
    if (!this.keyed) return;
    this.keyed = this.pointed = false;
    this.plot.setCursor({ left: -10, top: -10 }, true, true);
  }

  /** key moves the cursor over what is drawn, by a pixel or more; with Shift ten times as far. */
  key(event) {
    const { from, to } = this.view, pixel = (to - from) / Math.max(1, this.plot.over.clientWidth), now = this.cursor;
    const stops = this.stops().filter((t) => t >= from && t <= to), far = event.shiftKey ? 20 : 1;
    if (event.ctrlKey || event.metaKey || event.altKey || !stops.length) return;
    const target = {
      ArrowRight: () => stops.find((t) => now === null || t > now + far * pixel) ?? stops.at(-1),
      ArrowLeft: () => (now === null ? stops.at(-1) : stops.findLast((t) => t < now - far * pixel) ?? stops[0]),
      Home: () => stops[0], End: () => stops.at(-1),
    }[event.key];
    if (target) {
      this.keyed = this.pointed = true;
      this.moveTo(target());
      say(stamp(Math.round(this.cursor)) + ": " + this.valuesAt(this.cursor).map((v) => `${v.name} ${v.text}`).join(", "));
    } else if (event.key === "Enter" && now !== null) {
      this.on.pin(Math.round(now));
    } else if (event.key === "Escape" && this.keyed) {
      this.leave();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** list fills the table of what is drawn, if it is open. */
  list() {
    if (!this.drawn.open) return;
    const { head, rows } = this.table(), most = 500;
    this.drawn.lastChild.replaceChildren(el("table", null, el("caption", { class: rows.length > most ? "" : "hidden" }, `${this.name}: ` + (rows.length > most ? `the newest ${most} of ${rows.length}` : "what is drawn")),
      el("thead", null, el("tr", null, head.map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", null, rows.slice(-most).reverse().map((row) => el("tr", null, row.map((cell, i) => el(i ? "td" : "th", i ? null : { scope: "row" }, cell)))))));
  }

  close() {
    this.size.disconnect();
    clearTimeout(this.pinning);
    this.plot?.destroy();
    this.node.remove();
  }
}

/** The series of a line in a chart: the line itself, and the highest and the lowest numbers between which its band is. */
const perLine = 3, of = (line) => 1 + perLine * line;

export class LinePanel extends Panel {
  /** lines are {name, entity, field, colour}: the number of a colour of the theme. */
  constructor(root, { title, lines, height, last }, on) {
    const unit = unitOf(lines[0].field);
    super(root, title, unit.unit, on);
    this.lines = lines;
    this.unit = unit;
    const option = options(this, height, on, last);
    option.series = [{}, ...lines.flatMap(({ name, colour: n }, i) => {
      const stroke = seriesColour(n), fill = lines.length === 1 ? () => (this.data?.[i].hi ? null : stroke + "1c") : undefined;
      const edge = { points: { show: false } };
      return [{ label: name, stroke, fill, width: 1.6, points: { size: 5, fill: stroke, filter: (u, s, show) => (show ? null : alone(u, s)) } }, edge, edge];
    })];
    option.bands = lines.map(({ colour: n }, i) => ({ series: [of(i) + 1, of(i) + 2], fill: seriesColour(n) + (lines.length === 1 ? "50" : "30") }));
    option.cursor.points = { show: (u, s) => (s % perLine === 1 ? document.createElement("div") : false) };
    option.axes[1].values = (u, splits) => { const texts = splits.map(values.number), places = Math.max(...texts.map(decimals)); return texts.map((text) => padded(text, places)); };
    option.scales.y = { range: (u, low, high) => this.range(low, high) };
    option.hooks.draw.unshift((u) => { for (const value of this.thresholds()) threshold(u, value, withUnit(value, unit)); });
    this.plot = new uPlot(option, [[], ...lines.flatMap(() => [[], [], []])], this.place);
    this.legend = new Legend(this, lines.length > 1);
    this.header.append(this.drawn);
    this.start();
  }

  thresholds() { return (this.view.thresholds || []).filter((t) => t.field === this.lines[0].field).map((t) => t.value); }

  /** range returns the scale: what is drawn and the thresholds, with some room. */
  range(low, high) {
    const all = [low, high, ...this.thresholds()].filter(Number.isFinite);
    return all.some((x) => x) ? uPlot.rangeNum(Math.min(...all), Math.max(...all), .1, true) : [0, 1];
  }

  /** set shows data, {t, v} or {t, v, lo, hi} for each line, in a view. */
  set(data, view) {
    this.view = view;
    this.data = data;
    const tables = data.map((d) => [d.t, d.v, d.hi || d.t.map(() => undefined), d.lo || d.t.map(() => undefined)]);
    // A gap of a line is also one where other lines have points: mode 2 of uPlot.join.
    this.plot.setData(tables.length === 1 ? tables[0] : uPlot.join(tables, tables.map(() => [0, 2, 2, 2])), false);
    this.plot.setScale("x", { min: view.from, max: view.to });
    this.lines.forEach((line, i) => {
      const show = this.shown(line);
      if (this.plot.series[of(i)].show !== show) for (let s = 0; s < perLine; s++) this.plot.setSeries(of(i) + s, { show });
    });
    this.plot.redraw(true);
    const newest = this.lines.map((line, i) => `${line.name}: ${withUnit(data[i].v.findLast((x) => x !== null), this.unit).replace("–", "no points")}`);
    this.plot.root.setAttribute("aria-label", `Chart of ${this.name}, newest ${newest.join(", ")}`);
    this.legend.set(data, view);
    this.list();
  }

  /** shown reports whether a line is: all are, unless the address names some. */
  shown(line) {
    const only = (this.view.only || []).filter((id) => this.lines.some((l) => l.entity === id));
    return !only.length || only.includes(line.entity);
  }

  /** valuesAt returns what the lines have at a time, the highest number first. */
  valuesAt(at) {
    return this.lines.map((line, i) => ({ ...line, ...this.sampleAt(this.data?.[i], at, line.gap) })).filter((line) => this.shown(line)).sort((a, b) => (b.value ?? -Infinity) - (a.value ?? -Infinity));
  }

  sampleAt(d, at, gap) {
    const i = d ? nearest(d.t, at) : -1, reach = Math.max(gap || 0, 8 * (this.view.to - this.view.from) / this.width());
    if (i < 0 || d.v[i] === null || Math.abs(d.t[i] - at) > reach) return { text: "no point", range: silence(d, at) };
    const range = d.hi && d.hi[i] > d.lo[i] ? ` mean, ${withUnit(d.lo[i], this.unit)} to ${withUnit(d.hi[i], this.unit)}` : "";
    return { value: d.v[i], t: d.t[i], text: withUnit(d.v[i], this.unit), range };
  }

  stops() { return [...new Set((this.data || []).flatMap((d, i) => (this.shown(this.lines[i]) ? d.t.filter((t, j) => d.v[j] !== null) : [])))].sort((a, b) => a - b); }

  table() {
    const windows = this.data?.some((d) => d.hi), many = this.lines.length > 1;
    const rows = (this.data || []).flatMap((d, i) => d.t.flatMap((t, j) => (d.v[j] === null || t < this.view.from || t >= this.view.to || !this.shown(this.lines[i]) ? [] : [{ t, cells: [
      stamp(t), ...(many ? [this.lines[i].name] : []), withUnit(d.v[j], this.unit), ...(windows ? [withUnit(d.lo?.[j] ?? d.v[j], this.unit), withUnit(d.hi?.[j] ?? d.v[j], this.unit)] : [])] }])));
    return { head: ["Time", ...(many ? ["Entity"] : []), windows ? "Mean" : "Value", ...(windows ? ["Lowest", "Highest"] : [])], rows: rows.sort((a, b) => a.t - b.t).map((row) => row.cells) };
  }
}

/** silence says between which points a time without one is. */
function silence(d, at) {
  const has = (t, i) => d.v[i] !== null, before = d?.t.findLast((t, i) => t <= at && has(t, i)), after = d?.t.find((t, i) => t > at && has(t, i));
  const clock = (t) => stamp(Math.round(t)).slice(after - before < 86400000 ? 11 : 0, 19);
  return (before ? ` from ${clock(before)}` : "") + (after ? ` to ${clock(after)}` : "") + (before && after ? `, ${length(after - before)}` : "");
}

/** nearest returns the index of the time that is closest to another one; -1 if there are none. */
function nearest(times, at) {
  let low = 0, high = times.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < at) low = middle + 1;
    else high = middle;
  }
  return low > 0 && at - times[low - 1] < times[low] - at ? low - 1 : high < 0 ? -1 : low;
}

/** alone returns the indexes of points that a line would not show: those between two gaps within two pixels. */
function alone(u, s) {
  const found = [], ys = u.data[s];
  const x = (i) => u.valToPos(u.data[0][i], "x", true);
  for (let i = 0, first = -1, last = -1; i <= ys.length; i++) {
    if (ys[i] === undefined && i < ys.length) continue;
    if (i < ys.length && ys[i] !== null) {
      if (first < 0) first = i;
      last = i;
    } else {
      if (first >= 0 && x(last) - x(first) < 2) found.push(last);
      first = -1;
    }
  }
  return found;
}

export class BandPanel extends Panel {
  constructor(root, { title, last }, on) {
    super(root, title, "", on);
    this.bands = [];
    this.node.classList.add("bands");
    const option = options(this, 46, on, last);
    option.axes[1].values = () => [];
    option.axes[1].grid = option.axes[1].ticks = { show: false };
    option.scales.y = { range: () => [0, 1] };
    option.series = [{}, { paths: () => null, points: { show: false } }];
    option.cursor.points = { show: false };
    option.hooks.draw.unshift((u) => this.draw(u));
    this.plot = new uPlot(option, [[], []], this.place);
    this.legend = new StateLegend(this);
    this.header.append(this.drawn);
    this.start();
  }

  set(bands, view) {
    this.view = view;
    this.bands = bands;
    this.plot.setData([[view.from, view.to], [0, 0]], false);
    this.plot.setScale("x", { min: view.from, max: view.to });
    this.plot.redraw();
    const last = bands[bands.length - 1];
    this.plot.root.setAttribute("aria-label", `States of ${this.name}, newest ${last ? last.state || "mixed" : "none"}`);
    this.legend.set(bands, view);
    this.list();
  }

  draw(u) {
    const g = u.ctx, { left: x0, top, width, height } = u.bbox, ratio = devicePixelRatio;
    g.save();
    g.beginPath();
    g.rect(x0, top, width, height);
    g.clip();
    g.font = `${12 * ratio}px system-ui, sans-serif`;
    g.textBaseline = "middle";
    g.textAlign = "left";
    for (const band of this.bands) {
      const a = u.valToPos(band.from, "x", true), b = u.valToPos(band.to, "x", true), w = Math.max(1, b - a - (b - a > 3 ? 1 : 0)), fill = stateColour(band.state);
      g.globalAlpha = band.mixed ? .35 : 1;
      g.fillStyle = band.mixed ? colour("muted") : fill;
      g.fillRect(a, top, w, height);
      const text = band.mixed ? "" : values.visible(band.state), room = Math.min(b, x0 + width) - Math.max(a, x0) - 12 * ratio;
      if (text && g.measureText(text).width < room) {
        g.globalAlpha = 1;
        g.fillStyle = inkOn(fill);
        g.fillText(text, Math.max(a, x0) + 6 * ratio, top + height / 2 + 1);
      }
    }
    g.restore();
  }

  valuesAt(at) {
    const band = this.bands.find((b) => b.from <= at && at < b.to);
    return [{ name: this.name, state: band && !band.mixed ? band.state : null, text: band ? stateName(band) : "unknown" }];
  }

  stops() { return this.bands.map((b) => Math.max(b.from, this.view.from)); }

  table() { return { head: ["From", "To", "State"], rows: this.bands.map((b) => [stamp(Math.round(b.from)), stamp(Math.round(b.to)), stateName(b)]) }; }
}

const stateName = (band) => (band.mixed ? "several, each shorter than a pixel" : values.visible(band.state));
