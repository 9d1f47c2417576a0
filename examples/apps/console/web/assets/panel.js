// Panels of a chart: lines, and bands of states. All panels of a page have the same time axis and share the cursor.
import uPlot from "./vendor/uplot/uPlot.esm.js";
import { colour, series as seriesColour, stateColour } from "./theme.js";
import { el } from "./dom.js";
import { stamp, utc } from "./time.js";
import * as values from "./values.js";

const left = 62, syncKey = "console";

/** common returns what lines and bands have alike. view() returns {from, to, at}. */
function common(panel, height, on) {
  const axis = { stroke: colour("muted"), font: "12px system-ui, sans-serif", grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), size: 4 } };
  return {
    width: panel.width(), height, ms: 1, legend: { show: false }, padding: [8, 26, 0, 0],
    tzDate: (ms) => (utc() ? uPlot.tzDate(new Date(ms), "Etc/UTC") : new Date(ms)),
    scales: { x: { time: true, range: () => [panel.view.from, panel.view.to] } },
    axes: [{ ...axis, space: 70, values: clock }, { ...axis, size: left }],
    cursor: {
      sync: { key: syncKey, setSeries: false }, drag: { x: true, y: false, setScale: false, dist: 6 }, y: false,
      bind: {
        dblclick: () => () => { clearTimeout(panel.pinning); on.zoom(panel.view.from - (panel.view.to - panel.view.from) / 2, panel.view.to + (panel.view.to - panel.view.from) / 2); return null; },
        mousedown: (u, target, start) => (event) => {
          if (event.button !== 0) return;
          panel.dragged = false;
          start(event);
        },
      },
    },
    hooks: {
      setSelect: [(u) => {
        if (u.select.width < 6) return;
        const from = u.posToVal(u.select.left, "x"), to = u.posToVal(u.select.left + u.select.width, "x");
        u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        panel.dragged = true;
        on.zoom(from, to);
      }],
      setCursor: [(u) => panel.hover(u)],
      draw: [(u) => pinned(u, panel.view.at)],
    },
  };
}

/** clock returns the labels of the time axis, on 24 hours. The first one, and each midnight, also has the date. */
function clock(u, splits) {
  const step = splits.length > 1 ? splits[1] - splits[0] : 0;
  let day = "";
  return splits.map((ms) => {
    const text = stamp(ms), date = text.slice(0, 10), time = step < 60000 ? text.slice(11, 19) : text.slice(11, 16);
    if (step >= 27 * 86400000) return date.slice(0, 7);
    if (step >= 86400000) return date.slice(5);
    const out = date === day ? time : time + "\n" + date;
    day = date;
    return out;
  });
}

/** pinned draws the line of the as-of cursor. */
function pinned(u, at) {
  if (!at) return;
  const x = Math.round(u.valToPos(at, "x", true));
  if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) return;
  const g = u.ctx;
  g.save();
  g.strokeStyle = colour("text");
  g.lineWidth = Math.max(1, devicePixelRatio);
  g.beginPath();
  g.moveTo(x, u.bbox.top);
  g.lineTo(x, u.bbox.top + u.bbox.height);
  g.stroke();
  g.restore();
}

class Panel {
  constructor(root, title) {
    this.title = el("span", { class: "panel-title" }, title);
    this.readout = el("span", { class: "readout" });
    this.place = el("div", { class: "plot" });
    this.node = el("section", { class: "panel card", "aria-label": title }, el("header", null, this.title, this.readout), this.place);
    root.append(this.node);
    this.size = new ResizeObserver(() => {
      if (this.plot && this.plot.width !== this.width()) this.plot.setSize({ width: this.width(), height: this.plot.height });
    });
    this.size.observe(this.place);
    this.view = { from: 0, to: 1, at: null };
  }

  /** start begins to react to clicks. A click that is neither a drag nor a half of a double click sets the as-of cursor. */
  start(on) {
    this.plot.over.addEventListener("click", (event) => {
      const at = this.plot.posToVal(event.clientX - this.plot.over.getBoundingClientRect().left, "x");
      clearTimeout(this.pinning);
      if (!this.dragged) this.pinning = setTimeout(() => on.pin(at), 250);
    });
    this.plot.root.setAttribute("role", "img");
    this.plot.root.setAttribute("aria-label", "Chart of " + this.title.textContent);
  }

  /** dragging reports whether the user is choosing an interval. */
  get dragging() { return this.plot.select.width > 0; }

  width() { return Math.max(120, this.place.clientWidth); }

  close() {
    this.size.disconnect();
    this.plot?.destroy();
    this.node.remove();
  }
}

/** The series of a line in a chart: the line itself, and the highest and the lowest numbers between which its band is. */
const perLine = 3, of = (line) => 1 + perLine * line;

export class LinePanel extends Panel {
  /** lines are {name, colour}: the number of a colour of the theme. */
  constructor(root, title, lines, height, on) {
    super(root, title);
    this.lines = lines;
    const options = common(this, height, on);
    options.series = [{}, ...lines.flatMap(({ name, colour: n }, i) => {
      const stroke = seriesColour(n), fill = lines.length === 1 ? () => (this.data?.[i].hi ? null : stroke + "1c") : undefined;
      const edge = { points: { show: false } };
      return [{ label: name, stroke, fill, width: 1.6, points: { size: 5, fill: stroke, filter: (u, s, show, gaps) => (show ? null : alone(u, s)) } }, edge, edge];
    })];
    options.bands = lines.map(({ colour: n }, i) => ({ series: [of(i) + 1, of(i) + 2], fill: seriesColour(n) + (lines.length === 1 ? "50" : "30") }));
    options.cursor.points = { show: (u, s) => (s % perLine === 1 ? document.createElement("div") : false) };
    options.axes[1].values = (u, splits) => splits.map((v) => values.number(v));
    this.plot = new uPlot(options, [[], ...lines.flatMap(() => [[], [], []])], this.place);
    this.start(on);
  }

  /** set shows data, {t, v} or {t, v, lo, hi} for each line, in a view. */
  set(data, view) {
    this.view = view;
    this.data = data;
    const tables = data.map((d) => [d.t, d.v, d.hi || d.t.map(() => undefined), d.lo || d.t.map(() => undefined)]);
    // A gap of a line is also one where other lines have points: mode 2 of uPlot.join.
    this.plot.setData(tables.length === 1 ? tables[0] : uPlot.join(tables, tables.map(() => [0, 2, 2, 2])), false);
    this.plot.redraw(true);
    this.plot.setScale("x", { min: view.from, max: view.to });
    this.latest = data.map((d) => d.v.findLast((x) => x !== null));
    const all = this.lines.map((line, i) => `${line.name}: ${this.latest[i] === undefined ? "no points" : values.number(this.latest[i])}`);
    this.plot.root.setAttribute("aria-label", `Chart of ${this.title.textContent}, newest ${all.join(", ")}`);
    this.hover(this.plot);
  }

  hover(u) {
    const index = u.cursor.idx, over = index !== null && index !== undefined && u.cursor.left >= 0;
    const shown = this.lines.map((line, i) => {
      const at = over ? near(u, of(i), index) : -1, value = over ? u.data[of(i)][at] : this.latest?.[i];
      const high = u.data[of(i) + 1]?.[at], low = u.data[of(i) + 2]?.[at];
      return el("span", { class: "value" }, this.lines.length > 1 ? swatch(line.colour) : null, value === undefined || value === null ? "–" : values.number(value),
        high > low ? el("small", null, ` mean, ${values.number(low)} to ${values.number(high)}`) : null);
    });
    this.readout.replaceChildren(...shown, over ? el("time", null, stamp(Math.round(u.data[0][index]))) : el("span", { class: "note" }, "newest"));
  }
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

/** near returns the index of a line's sample at an index or before it: lines have points at different times. */
function near(u, line, index) {
  for (let i = index; i >= 0 && i > index - 50; i--) {
    if (u.data[line][i] !== undefined) return i;
  }
  return -1;
}

export const swatch = (n) => {
  const node = el("i", { class: "swatch", "aria-hidden": "true" });
  node.style.background = `var(--series-${n % 8 + 1})`;
  return node;
};

export class BandPanel extends Panel {
  constructor(root, title, on) {
    super(root, title);
    this.bands = [];
    this.node.classList.add("bands");
    const options = common(this, 46, on);
    options.axes[0].show = false;
    options.axes[1].values = () => [];
    options.axes[1].grid = options.axes[1].ticks = { show: false };
    options.padding = [4, 26, 8, 0];
    options.scales.y = { range: () => [0, 1] };
    options.series = [{}, { paths: () => null, points: { show: false } }];
    options.cursor.points = { show: false };
    options.hooks.draw.unshift((u) => this.draw(u));
    this.plot = new uPlot(options, [[], []], this.place);
    this.start(on);
  }

  set(bands, view) {
    this.view = view;
    this.bands = bands;
    this.plot.setData([[view.from, view.to], [0, 0]], false);
    this.plot.setScale("x", { min: view.from, max: view.to });
    this.plot.redraw();
    const last = bands[bands.length - 1];
    this.plot.root.setAttribute("aria-label", `States of ${this.title.textContent}, newest ${last ? last.state || "mixed" : "none"}`);
    this.hover(this.plot);
  }

  draw(u) {
    const g = u.ctx, { left: x0, top, width, height } = u.bbox;
    g.save();
    g.beginPath();
    g.rect(x0, top, width, height);
    g.clip();
    g.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
    g.textBaseline = "middle";
    g.textAlign = "left";
    for (const band of this.bands) {
      const a = u.valToPos(band.from, "x", true), b = u.valToPos(band.to, "x", true), w = Math.max(1, b - a - (b - a > 3 ? 1 : 0));
      g.globalAlpha = band.mixed ? .35 : 1;
      g.fillStyle = band.mixed ? colour("muted") : stateColour(band.state);
      g.fillRect(a, top, w, height);
      const text = band.mixed ? "" : values.visible(band.state), room = Math.min(b, x0 + width) - Math.max(a, x0) - 12 * devicePixelRatio;
      if (text && g.measureText(text).width < room) {
        g.globalAlpha = 1;
        g.fillStyle = colour("card");
        g.fillText(text, Math.max(a, x0) + 6 * devicePixelRatio, top + height / 2 + 1);
      }
    }
    g.restore();
  }

  hover(u) {
    const over = u.cursor.left >= 0, at = over ? u.posToVal(u.cursor.left, "x") : this.view.to;
    const band = over ? this.bands.find((b) => b.from <= at && at < b.to) : this.bands[this.bands.length - 1];
    const text = band ? (band.mixed ? "several, each shorter than a pixel" : values.visible(band.state)) : "unknown";
    this.readout.replaceChildren(el("span", { class: "value" }, text), over ? el("time", null, stamp(Math.round(at))) : el("span", { class: "note" }, "newest"));
  }
}
