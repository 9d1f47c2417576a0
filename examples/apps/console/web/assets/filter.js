// Filters as the server has read them, for points that come by the stream; and the text of filters.
import { numberOf } from "./values.js";

/** uses reports whether a filter has a part of a kind, such as "silent". */
export const uses = (c, of) => Boolean(c) && (c.of === of || [...(c.all || []), ...(c.any || []), ...(c.not ? [c.not] : [])].some((part) => uses(part, of)));

/**
 * matches reports whether a filter chooses a row with the values of fields, whose newest point has an age in milliseconds. It is null if
 * that is not known: a value that the row does not have may be in an older point, unless the row is whole.
 */
export function matches(c, row, fields, age, whole) {
  const among = (parts, end) => {
    const all = parts.map((part) => matches(part, row, fields, age, whole));
    return all.includes(end) ? end : all.includes(null) ? null : !end;
  };
  if (!c) return true;
  if (c.all) return among(c.all, false);
  if (c.any) return among(c.any, true);
  if (c.not) {
    const found = matches(c.not, row, fields, age, whole);
    return found === null ? null : !found;
  }
  if (c.of === "silent") return compares(c.op, age, c.number);
  if (c.of === "name") return matchesText(c, row.parts.join("/"));
  if (c.of === "key") return matchesValue(c, row.parts[c.key || 0]);
  const i = fields.indexOf(c.field || "."), value = row.v[i] ?? null;
  if (c.now && (value === null || (row.at?.[i] ?? row.t) < row.t)) return false;
  if (value === null) return whole ? false : null;
  return matchesValue(c, value);
}

const decimal = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

const toNumber = (value) => (typeof value === "string" ? (decimal.test(value) ? Number(value) : null) : numberOf(value));

function matchesValue(c, value) {
  const x = toNumber(value), text = typeof value === "object" ? value.text : String(value);
  if (!c.op) return typeof value === "boolean" ? value : x !== null ? x !== 0 : !["", "false", "null"].includes(text);
  if (c.op !== "~" && c.number !== undefined && x !== null) return compares(c.op, x, c.number);
  return matchesText(c, text);
}

function matchesText(c, text) {
  if (c.op === "=") return text === (c.text || "");
  if (c.op === "!=") return text !== (c.text || "");
  return c.op === "~" && text.toLowerCase().includes((c.text || "").toLowerCase());
}

function compares(op, x, y) {
  return { "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y, "=": x === y, "!=": x !== y }[op];
}

const plain = /^[\p{L}_][\p{L}\d_.-]*$/u, words = ["and", "or", "not", "name", "silent", "now", "for", "contains"];

/** named returns a field as filters name it, beside key fields. */
export const named = (field, keys) => (field === "." || plain.test(field) && !words.includes(field.toLowerCase()) && !keys.includes(field) ? field : "`" + field + "`");

/** equals returns the text of a comparison of a field with a state. */
export function equals(field, state, keys) {
  const quote = state.includes('"') ? "'" : '"';
  return `${named(field, keys)} = ${plain.test(state) && !words.includes(state.toLowerCase()) ? state : quote + state + quote}`;
}

/** toggled adds a comparison to a filter, or removes it where it was added. */
export function toggled(where, comparison) {
  if (!where) return comparison;
  if (where === comparison) return null;
  if (where.endsWith(" and " + comparison)) return where.slice(0, -(" and " + comparison).length);
  return (/\bor\b/i.test(where) ? `(${where})` : where) + " and " + comparison;
}

/** has reports whether a filter has the comparison, so that it can be removed. */
export const has = (where, comparison) => where === comparison || where.endsWith(" and " + comparison);

/** order compares two values: numbers, then text, then what is missing. */
export function order(a, b, down) {
  const [x, y] = [kind(a), kind(b)];
  if (x !== y) return x === 2 || y === 2 || !down ? x - y : y - x;
  if (x === 2) return 0;
  const [p, q] = x === 1 ? [a.text ?? a, b.text ?? b] : [toNumber(a), toNumber(b)];
  return (p < q ? -1 : p > q ? 1 : 0) * (down ? -1 : 1);
}

const kind = (v) => (v === null || v === undefined ? 2 : toNumber(v) !== null ? 0 : 1);
