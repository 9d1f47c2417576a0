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

const day = 86400000, units = [["y", 365 * day], ["w", 7 * day], ["d", day], ["h", 3600000], ["m", 60000], ["s", 1000]];

/** span returns a length of time in its largest unit: 3m, 2d. */
export function span(ms) {
  if (ms < 0) return "0s";
  for (const [name, length] of units) {
    if (ms >= length && name !== "w") return Math.floor(ms / length) + name;
  }
  return "0s";
}

/** length returns a length of time in its two largest units: 3m 20s, 2d 4h. */
export function length(ms) {
  const first = units.findIndex(([name, size]) => ms >= size && name !== "w"), next = first === 0 ? 2 : first + 1;
  if (first < 0) return Math.round(ms) + "ms";
  const rest = first < units.length - 1 ? span(ms % units[first][1]) : "0s";
  return span(ms) + (rest !== "0s" && rest.endsWith(units[next][0]) ? " " + rest : "");
}

/** lengthName returns the name of a length of time: hour, or time if it has none. */
export const lengthName = (ms) => ({ 60000: "minute", 3600000: "hour", [day]: "day", [7 * day]: "week", [365 * day]: "year" }[ms] || "time");

/** parseSpan returns the milliseconds of a text such as 15m, or null. */
export function parseSpan(text) {
  const parts = /^(\d{1,4})([smhdwy])$/.exec(text || "");
  return parts && Number(parts[1]) > 0 ? Number(parts[1]) * units.find(([name]) => name === parts[2])[1] : null;
}

export const ranges = ["1m", "5m", "15m", "1h", "6h", "1d", "7d", "30d", "90d", "1y", "5y"];

/** midnight returns the beginning of a day in the zone of the page, some days after that of a time. */
function midnight(ms, days) {
  const [y, mo, d] = fields(ms, utc());
  return utc() ? Date.UTC(y, mo - 1, d + days) : new Date(y, mo - 1, d + days).getTime();
}

/** timeOf returns a time of a day in the zone of the page, or NaN if there is none of these numbers. */
function timeOf(y, mo, d, h, mi, s) {
  const ms = utc() ? Date.UTC(y, mo - 1, d, h, mi, s) : new Date(y, mo - 1, d, h, mi, s).getTime();
  return mo >= 1 && mo <= 12 && h < 24 && mi < 60 && s < 60 && d >= 1 && d <= new Date(Date.UTC(y, mo, 0)).getUTCDate() ? ms : NaN;
}

/**
 * parseTime returns the time of a text, or NaN: now, now-2d, 3h ago, yesterday, today 06:30, 14:05, 2026-06-01, 2026-06-01 14:05:30, all in the zone of
 * the page, and 2026-06-01T12:00:00Z.
 */
export function parseTime(text, now) {
  const t = (text || "").trim().toLowerCase().replace("−", "-");
  if (/^\d{4}-\d\d-\d\dt[\d:.]+z$/.test(t)) return Date.parse(t.toUpperCase());
  if (t === "now") return now;
  const before = /^now\s*([+-])\s*(\w+)$/.exec(t) || /^()(\w+) ago$/.exec(t);
  if (before) return now + (before[1] === "+" ? 1 : -1) * (parseSpan(before[2]) ?? NaN);
  const parts = /^(?:(today|yesterday)|(\d{4})-(\d\d)-(\d\d))?(?:(?:^|[ t])(\d{1,2}):(\d\d)(?::(\d\d))?)?$/.exec(t);
  if (!t || !parts) return NaN;
  const [y, mo, d] = parts[2] ? parts.slice(2, 5).map(Number) : fields(midnight(now, parts[1] === "yesterday" ? -1 : 0), utc());
  return timeOf(y, mo, d, ...[5, 6, 7].map((i) => Number(parts[i] || 0)));
}

/** isRelative reports whether a text names another time tomorrow than today. */
export const isRelative = (text) => /now|ago|today|yesterday|^\s*\d{1,2}:/i.test(text || "");

/** endOf returns the end of an interval that begins at a text: of a day, if that names one, and otherwise now. */
const endOf = (text, from, now) => (/^\s*(today|yesterday|\d{4}-\d\d-\d\d)\s*$/i.test(text) ? Math.min(midnight(from, 1), Math.max(now, from + 1000)) : now);

/** interval returns the interval that the address names: fixed, or up to now, which is live. The range is null unless the address names the last one. */
export function interval(frame, otherwise = "1h") {
  const now = frame.now(), a = frame.get("from"), b = frame.get("to");
  const from = parseTime(a, now), to = b ? parseTime(b, now) : endOf(a || "", from, now);
  if (from < to) return { from, to, live: to === now, range: null };
  const range = parseSpan(frame.get("range")) ? frame.get("range") : otherwise;
  return { from: now - parseSpan(range), to: now, live: true, range };
}

/** iso returns a time as the server reads it. */
export const iso = (ms) => new Date(ms).toISOString();

/** textOf returns a time as parseTime reads it, in the zone of the page. */
export const textOf = (ms) => stamp(Math.floor(ms / 1000) * 1000);
