// What all plots of a page share: the time axis, the cursor, the width of the scale on the left, and marks.
import uPlot from "./vendor/uplot/uPlot.esm.js";
import { colour } from "./theme.js";
import { stamp, utc } from "./time.js";
import { visible } from "./values.js";

const font = "12px system-ui, sans-serif", syncKey = "console", right = 18;
const pen = document.createElement("canvas").getContext("2d");

/** widthOf returns the width of a text on an axis in pixels of CSS. */
function widthOf(text) {
  pen.font = font;
  return pen.measureText(text).width;
}

/** Gutter is the width of the scales of a page. It is that of the widest number, so that all panels begin at the same place. */
export class Gutter {
  constructor() { this.needs = new Map(); }
  get width() { return Math.max(44, ...this.needs.values()); }
  need(plot, labels) { if (labels?.length) this.needs.set(plot, Math.ceil(Math.max(...labels.map(widthOf)) + 14)); }

  /** settle draws plots again whose scale has another width. */
  settle(plots) {
    for (const plot of this.needs.keys()) if (!plots.includes(plot)) this.needs.delete(plot);
    for (const plot of plots) if (plot.axes[1]._size !== this.width) plot.redraw(false, true);
  }
}

/** options returns what lines and bands have alike. panel.view is {from, to, at, notes}; on has the functions zoom, pin and hover. */
export function options(panel, height, on, axisShown) {
  const axis = { stroke: colour("muted"), font, grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), size: 4 } };
  const size = (u, labels) => { on.gutter.need(u, labels); return on.gutter.width; };
  return {
    width: panel.width(), height: height + (axisShown ? 42 : 0), ms: 1, legend: { show: false }, padding: [8, right, axisShown ? 0 : 8, 0],
    tzDate: (ms) => (utc() ? uPlot.tzDate(new Date(ms), "Etc/UTC") : new Date(ms)),
    scales: { x: { time: true, range: () => [panel.view.from, panel.view.to] } },
    axes: [{ ...axis, space: 70, size: axisShown ? 42 : 0, ticks: axisShown ? axis.ticks : { show: false }, values: axisShown ? clock : (u, splits) => splits.map(() => "") }, { ...axis, size }],
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
      setCursor: [() => on.hover()],
      draw: [(u) => notes(u, panel), (u) => upright(u, panel.view.at, colour("text"))],
    },
  };
}

/** clock returns the labels of the time axis, on 24 hours. The first one, and each midnight, also has the date, if there is room for it. */
function clock(u, splits) {
  const step = splits.length > 1 ? splits[1] - splits[0] : 0;
  let day = "";
  const room = (ms, text) => u.valToPos(ms, "x") + widthOf(text) / 2 <= u.bbox.width / devicePixelRatio + right;
  return splits.map((ms) => {
    const text = stamp(ms), date = text.slice(0, 10), time = step < 60000 ? text.slice(11, 19) : text.slice(11, 16);
    const long = step >= 27 * 86400000 ? date.slice(0, 7) : step >= 86400000 ? date.slice(5) : time;
    if (!room(ms, long)) return "";
    if (step >= 86400000 || date === day || !room(ms, date)) return long;
    day = date;
    return time + "\n" + date;
  });
}

/** upright draws a line at a time, and reports where; null if that is not in sight. */
function upright(u, at, stroke, dash = []) {
  if (!at) return null;
  const x = Math.round(u.valToPos(at, "x", true));
  if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) return null;
  line(u.ctx, stroke, dash, x, u.bbox.top, x, u.bbox.top + u.bbox.height);
  return x;
}

function line(g, stroke, dash, x0, y0, x1, y1) {
  g.save();
  g.strokeStyle = stroke;
  g.lineWidth = Math.max(1, Math.round(devicePixelRatio));
  g.setLineDash(dash.map((n) => n * devicePixelRatio));
  g.translate(g.lineWidth % 2 / 2, g.lineWidth % 2 / 2); // so that a line covers whole pixels
  g.beginPath();
  g.moveTo(x0, y0);
  g.lineTo(x1, y1);
  g.stroke();
  g.restore();
}

/** label writes a text next to a point, on the side on which it fits, and shortens it if it fits on none. */
function label(u, text, ink, x, y) {
  const g = u.ctx, ratio = devicePixelRatio, { left, width } = u.bbox;
  g.save();
  g.font = `${12 * ratio}px system-ui, sans-serif`;
  g.textBaseline = "top";
  const most = width - 10 * ratio;
  while (text.length > 1 && g.measureText(text).width > most) text = text.slice(0, -2) + "…";
  const size = g.measureText(text).width, at = Math.max(left, x + 5 * ratio + size > left + width ? x - size - 5 * ratio : x + 5 * ratio);
  g.fillStyle = colour("card");
  g.globalAlpha = .85;
  g.fillRect(at - 2 * ratio, y, size + 4 * ratio, 15 * ratio);
  g.globalAlpha = 1;
  g.fillStyle = ink;
  g.fillText(text, at, y + 2 * ratio);
  g.restore();
}

/** notes draws the notes of the address; the first panel has their texts. */
function notes(u, panel) {
  for (const { at, text } of panel.view.notes || []) {
    const x = upright(u, at, colour("accent"), [2, 3]);
    if (x !== null && panel.first) label(u, visible(text), colour("accent"), x, u.bbox.top);
  }
}

/** threshold draws a line at a number. */
export function threshold(u, value, text) {
  const y = Math.round(u.valToPos(value, "y", true)), { left, top, width, height } = u.bbox;
  if (y < top || y > top + height) return;
  line(u.ctx, colour("bad"), [6, 4], left, y, left + width, y);
  label(u, text, colour("bad"), left + width, y < top + 18 * devicePixelRatio ? y + 2 * devicePixelRatio : y - 16 * devicePixelRatio);
}
