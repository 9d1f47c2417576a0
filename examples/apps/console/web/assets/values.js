// How values and entities are shown.

/** text returns a value of the server as text. A number that JavaScript cannot hold comes as an object with its text. */
export function text(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "object") return visible(value.text);
  if (typeof value === "number") return number(value);
  return visible(String(value));
}

/** number returns a number with at most six digits, and all digits of a whole one. */
export function number(x) {
  if (!Number.isFinite(x)) return "–";
  if (Number.isInteger(x) && Math.abs(x) < 1e15) return String(x);
  const size = Math.abs(x);
  if (size >= 1e15 || size < 1e-6) return x.toExponential(3);
  return String(Number(x.toPrecision(6)));
}

/** numberOf returns a value as a number that can be drawn, as the server does for lines: true is 1, false is 0. Others are null. */
export function numberOf(value) {
  const x = value?.number ?? (typeof value === "boolean" ? Number(value) : value);
  return typeof x === "number" && Number.isFinite(x) ? x : null;
}

/** label returns the name of a field. The value itself, as of a dataset of plain numbers, has none. */
export const label = (path) => (path === "." ? "value" : path);

/** partsOf returns the key fields of an entity's text, in which / and % are %XX. */
export function partsOf(id) {
  return id.split("/").map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
}

/** visible returns text with marks in place of characters that cannot be seen. */
export const visible = (part) => part.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g, "␣");

/** nameOf returns an entity in one line. */
export const nameOf = (parts) => parts.map(visible).join(" / ");

/** choose returns the fields that a page shows: those of the address that exist, or the first few. */
export function choose(fields, wanted, most, kind) {
  const all = fields.filter((f) => !kind || f[kind] > 0).map((f) => f.path);
  const named = wanted.filter((path) => all.includes(path));
  return (named.length ? named : all).slice(0, most);
}
