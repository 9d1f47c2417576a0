// The data of charts: lines and bands as the server sends them, and the points that arrive afterwards.
import { iso } from "./time.js";
import { numberOf } from "./values.js";

const most = 20000; // points of one line

/**
 * readLines returns {lines, window_ms, gap_ms} of some fields of an entity, with gaps where it usually sends more often. A line is {t, v} of all
 * points, or {t, v, lo, hi} of the mean, the lowest and the highest number of windows.
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
