// The data of charts: lines and bands as the server sends them, and the points that arrive afterwards.
import { iso } from "./time.js";
import { numberOf } from "./values.js";

const most = 20000; // points of one line

/**
 * readLines returns {lines, window_ms, gap_ms} of some fields of an entity, with gaps where it usually sends more often. A line is {t, v} of all
 * points, or {t, v, lo, hi, figures} of the mean, the lowest and the highest number of windows, with the figures of what they stand for.
 */
export function readLines(frame, dataset, entity, fields, view, columns, signal) {
  return frame.api(frame.path(dataset, "lines"), { entity, field: fields, from: iso(view.from), to: iso(view.to), columns }, signal);
}

/** readBands returns {bands, gap_ms} of a field whose values are states. */
export function readBands(frame, dataset, { entity, field }, view, columns, signal) {
  return frame.api(frame.path(dataset, "states"), { entity, field, from: iso(view.from), to: iso(view.to), columns }, signal);
}

/** addPoint adds a new point to a line, with a gap before it if it comes late. Points that are not new are left to the next reading. */
export function addPoint(line, t, value, gap) {
  const n = line.t.length, last = n ? line.t[n - 1] : -Infinity, x = numberOf(value);
  if (t <= last || x === null) return;
  const add = (at, v) => { line.t.push(at); for (const all of [line.v, line.lo, line.hi]) all?.push(v); };
  if (gap && n && t - last > gap) add((last + t) / 2, null);
  add(t, x);
  if (line.figures) addFigure(line.figures, t, x);
  if (line.t.length > most) for (const all of [line.t, line.v, line.lo, line.hi]) all?.splice(0, 1000);
}

/** addState adds a new point to bands. */
export function addState(bands, t, value, gap) {
  const last = bands[bands.length - 1], state = typeof value !== "object" ? String(value) : value?.number ? value.text : null;
  if (last && t < last.to) return;
  const joined = last && !(gap && t - last.to > gap);
  if (joined) last.to = t;
  if (state !== null && !(joined && last.state === state && !last.mixed)) bands.push({ from: t, to: t, state });
}

function addFigure(all, t, x) {
  all.mean = (all.n ? all.mean * all.n + x : x) / (all.n + 1);
  all.n++;
  all.min = Math.min(all.min ?? x, x);
  all.max = Math.max(all.max ?? x, x);
  all.last = x;
  all.to = Math.max(all.to, t);
}

/**
 * figuresOf returns {n, last, min, mean, max} of a line in a view. A line of points has them all; one of windows has those of the server, with
 * the interval that they stand for, since the windows alone would not say how many points each one has.
 */
export function figuresOf(line, { from, to }) {
  if (line.figures || line.lo) return line.figures || { n: 0 };
  let n = 0, sum = 0, min = Infinity, max = -Infinity, last = null;
  line.v.forEach((x, i) => {
    if (x === null || line.t[i] < from || line.t[i] >= to) return;
    n++;
    sum += x;
    min = Math.min(min, x);
    max = Math.max(max, x);
    last = x;
  });
  return { n, last, min, mean: Math.min(max, Math.max(min, sum / n)), max };
}

/** lengthsOf returns how many milliseconds of a view each state lasted, the longest first. The state null stands for several in a pixel. */
export function lengthsOf(bands, { from, to }) {
  const all = new Map();
  for (const band of bands) {
    const ms = Math.min(band.to, to) - Math.max(band.from, from), state = band.mixed ? null : band.state;
    if (ms > 0) all.set(state, (all.get(state) || 0) + ms);
  }
  return [...all].sort((a, b) => b[1] - a[1]);
}
