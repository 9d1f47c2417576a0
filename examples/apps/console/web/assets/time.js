// Times: what is shown, and the interval of a page.

/** utc reports whether times are shown in UTC, and not in the zone of this browser. */
export const utc = () => localStorage.getItem("zone") === "utc";

export function otherZone() {
  localStorage.setItem("zone", utc() ? "local" : "utc");
  window.dispatchEvent(new Event("zonechange"));
}

export function zoneName() {
  return utc() ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone || "Local";
}

const two = (n) => String(n).padStart(2, "0");

function fields(ms, inUTC) {
  const d = new Date(ms);
  return inUTC
    ? [d.getUTCFullYear(), d.getUTCMonth() + 1, d.getUTCDate(), d.getUTCHours(), d.getUTCMinutes(), d.getUTCSeconds(), d.getUTCMilliseconds()]
    : [d.getFullYear(), d.getMonth() + 1, d.getDate(), d.getHours(), d.getMinutes(), d.getSeconds(), d.getMilliseconds()];
}

/** stamp returns a date and a time: 2026-06-01 12:00:00, with milliseconds if there are any. */
export function stamp(ms, inUTC = utc()) {
  const [y, mo, d, h, mi, s, milli] = fields(ms, inUTC);
  return `${y}-${two(mo)}-${two(d)} ${two(h)}:${two(mi)}:${two(s)}` + (milli ? "." + String(milli).padStart(3, "0") : "");
}

/** both returns a time in the zone of this browser and in UTC. */
export const both = (ms) => `${stamp(ms, false)} ${Intl.DateTimeFormat().resolvedOptions().timeZone || "local"}\n${stamp(ms, true)} UTC`;

const units = [["y", 365 * 86400000], ["d", 86400000], ["h", 3600000], ["m", 60000], ["s", 1000]];

/** span returns a length of time in its largest unit: 3m, 2d. */
export function span(ms) {
  if (ms < 0) return "0s";
  for (const [name, length] of units) {
    if (ms >= length) return Math.floor(ms / length) + name;
  }
  return "0s";
}

/** lengthName returns the name of a length of time: hour, or time if it has none. */
export const lengthName = (ms) => ({ 60000: "minute", 3600000: "hour", 86400000: "day", [7 * 86400000]: "week", [365 * 86400000]: "year" }[ms] || "time");

/** parseSpan returns the milliseconds of a text such as 15m, or null. */
export function parseSpan(text) {
  const parts = /^(\d{1,4})([smhdy])$/.exec(text || "");
  return parts && Number(parts[1]) > 0 ? Number(parts[1]) * units.find(([name]) => name === parts[2])[1] : null;
}

export const ranges = ["1m", "5m", "15m", "1h", "6h", "1d", "7d", "30d", "90d", "1y", "5y"];

const isoTime = (text) => (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text || "") ? Date.parse(text) : NaN);

/** interval returns the interval that the address names: fixed, or the last range up to now. */
export function interval(frame, otherwise = "1h") {
  const from = isoTime(frame.get("from")), to = isoTime(frame.get("to"));
  if (from < to) return { from, to, live: false, range: null };
  const range = parseSpan(frame.get("range")) ? frame.get("range") : otherwise;
  const now = frame.now();
  return { from: now - parseSpan(range), to: now, live: true, range };
}

/** iso returns a time as the server reads it. */
export const iso = (ms) => new Date(ms).toISOString();

/** forInput and fromInput are the value of an input of the type datetime-local. */
export function forInput(ms) {
  return stamp(Math.floor(ms / 1000) * 1000).replace(" ", "T");
}

export function fromInput(text) {
  if (!text) return NaN;
  return Date.parse(utc() ? text + "Z" : text);
}
