// Units and decimals of numbers, by the last word of a field's name: temp_c, battery_pct, speedKmh, points_per_s.
import { number } from "./values.js";

/** A word is a unit and how many decimals are shown of it; without a second one, as many as the number has, up to six digits. */
const words = {
  c: ["°C", 1], celsius: ["°C", 1], f: ["°F", 1], k: ["K", 1], deg: ["°", 1], pct: ["%", 1], percent: ["%", 1],
  kmh: ["km/h", 1], kph: ["km/h", 1], mph: ["mph", 1], mps: ["m/s", 2], kn: ["kn", 1], rpm: ["rpm", 0],
  v: ["V", 2], mv: ["mV", 0], a: ["A", 2], ma: ["mA", 0], w: ["W", 1], kw: ["kW", 2], mw: ["MW", 2], wh: ["Wh", 1], kwh: ["kWh", 2], mwh: ["MWh", 2],
  hz: ["Hz", 2], khz: ["kHz", 2], mhz: ["MHz", 2], ohm: ["Ω", 1], db: ["dB", 1], dbm: ["dBm", 1],
  l: ["l", 1], ml: ["ml", 0], m3: ["m³", 2], mm: ["mm", 1], cm: ["cm", 1], m: ["m", 1], km: ["km", 1], g: ["g", 1], kg: ["kg", 1], t: ["t", 2],
  pa: ["Pa", 0], hpa: ["hPa", 1], kpa: ["kPa", 1], bar: ["bar", 2], mbar: ["mbar", 1], ppm: ["ppm", 0], ppb: ["ppb", 0], lx: ["lx", 0], lux: ["lx", 0],
  ns: ["ns"], us: ["µs"], ms: ["ms", 1], s: ["s", 1], sec: ["s", 1], min: ["min", 1], h: ["h", 1],
  bytes: ["B", 0], kb: ["kB", 1], mb: ["MB", 1], gb: ["GB", 2], kib: ["KiB", 1], mib: ["MiB", 1], gib: ["GiB", 2], bps: ["bit/s", 0], eur: ["€", 2], usd: ["$", 2],
};

/** unitOf returns {unit, decimals} of a field. The unit is "" if its name has none. */
export function unitOf(path) {
  const parts = path.slice(path.lastIndexOf(".") + 1).replace(/([a-z0-9])([A-Z])/g, "$1_$2").toLowerCase().split(/[^a-z0-9]+/).filter(Boolean);
  const word = Object.hasOwn(words, parts.at(-1) || "") && parts.length > 1 ? words[parts.at(-1)] : null;
  if (!word) return { unit: "" };
  return parts.length > 2 && parts.at(-2) === "per" ? { unit: "/" + word[0] } : { unit: word[0], decimals: word[1] };
}

/** digits returns a number without its unit. A number below one keeps three decimals or more, so that it does not become 0. */
export function digits(x, { decimals }) {
  if (decimals === undefined || x === null || x === undefined || !Number.isFinite(x) || Number.isInteger(x) || Math.abs(x) >= 1e15) return number(x);
  const size = Math.abs(x);
  return size >= 1 ? x.toFixed(decimals) : String(Number(x.toFixed(Math.max(3, decimals, Math.min(9, 2 - Math.floor(Math.log10(size)))))));
}

export const decimals = (text) => (String(text).split(".")[1] || "").length;

/** padded gives a number in a text as many decimals as others have. */
export const padded = (text, places) => (/^-?\d+(\.\d+)?$/.test(text) && decimals(text) < places ? text + (text.includes(".") ? "" : ".") + "0".repeat(places - decimals(text)) : text);

/** meanUnit is the unit of the mean of numbers: without decimals of its own, it has one more than they. */
export const meanUnit = (of, unit) => ({ ...unit, decimals: unit.decimals ?? Math.min(6, 1 + Math.max(...[of.last, of.min, of.max].map(decimals))) });

/** withUnit returns a number with its unit, which a line break does not part. */
export function withUnit(x, unit) {
  const text = digits(x, unit);
  return text === "–" || !unit.unit ? text : text + (unit.unit === "°" ? "" : "\u00a0") + unit.unit;
}
