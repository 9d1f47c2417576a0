// The controls of time: the range, zoom, a step back and forward, and how often a live chart is drawn. All of them change the address.
import { el } from "./dom.js";
import { interval, iso, isRelative, parseSpan, parseTime, ranges, textOf, zoneName } from "./time.js";

export const timeKeys = [
  ["+ and −", "zoom in and out"], ["← and →", "earlier and later"], ["0", "the last hour, live"], ["v", "chart or table"], ["Esc", "remove the as-of cursor"],
  ["Tab, then ← and →", "move the cursor of a chart"], ["Enter", "set the as-of cursor there"],
];

const shortest = 1000, longest = 50 * 365 * 86400000;

/** show shows a fixed interval. */
export function show(frame, from, to, replace) {
  if (!(to - from >= shortest)) { const middle = (from + to) / 2; from = middle - shortest / 2; to = middle + shortest / 2; }
  if (to - from > longest) from = to - longest;
  frame.go(null, { from: iso(from), to: iso(to), range: null, cursor: null }, replace);
}

/** zoom makes the interval longer or shorter. A live one stays live. */
export function zoom(frame, factor) {
  const { from, to, range } = interval(frame);
  if (range) {
    const i = ranges.indexOf(range), next = ranges[i < 0 ? 3 : Math.max(0, Math.min(ranges.length - 1, i + (factor > 1 ? 1 : -1)))];
    frame.go(null, { range: next });
    return;
  }
  const middle = (from + to) / 2, half = (to - from) / 2 * factor;
  show(frame, middle - half, Math.min(middle + half, Math.max(to, frame.now())));
}

/** step moves the interval by a part of its length, but not into the future. */
export function step(frame, part) {
  const { from, to, live } = interval(frame), length = to - from;
  if (live && part > 0) return;
  const end = Math.min(to + part * length, frame.now());
  show(frame, end - length, end);
}

export const goLive = (frame, range) => frame.go(null, { range: range || null, from: null, to: null, cursor: null });

export function timeKey(frame, event) {
  switch (event.key) {
    case "+": case "=": zoom(frame, .5); return true;
    case "-": case "−": zoom(frame, 2); return true;
    case "ArrowLeft": step(frame, -.5); return true;
    case "ArrowRight": step(frame, .5); return true;
    case "0": goLive(frame); return true;
    case "v": frame.go(null, { view: frame.get("view") === "table" ? null : "table", cursor: null }); return true;
    case "Escape": if (!frame.get("at")) return false; frame.go(null, { at: null }, true); return true;
  }
  return false;
}

/** dates is the menu in which both ends are typed. What is relative stays so in the address. */
function dates(frame, now) {
  const input = (name, label) => el("input", {
    value: isRelative(frame.get(name)) ? frame.get(name) : now.live ? (name === "to" ? "now" : now.range ? "now-" + now.range : textOf(now.from)) : textOf(now[name]),
    "aria-label": label, size: 20, maxlength: 40, spellcheck: "false", autocomplete: "off", onfocus: (event) => event.target.select(), // so that typing replaces it
  });
  const from = input("from", "From"), to = input("to", "To"), note = el("p", { class: "note", role: "status" });
  const keep = (text, ms) => (isRelative(text) ? text.trim() : iso(ms));
  const submit = (event) => {
    event.preventDefault();
    const at = frame.now(), a = parseTime(from.value, at), b = to.value.trim() ? parseTime(to.value, at) : interval({ now: () => at, get: (name) => (name === "from" ? from.value : null) }).to;
    const range = /^\s*now\s*-\s*(\w+)\s*$/i.exec(from.value);
    if (Number.isNaN(a) || Number.isNaN(b)) note.textContent = `“${Number.isNaN(a) ? from.value : to.value}” is no time.`;
    else if (!(a < b)) note.textContent = "“From” has to be before “to”.";
    else if (b - a > longest) note.textContent = "That is more than 50 years.";
    else if (range && /^\s*(now)?\s*$/i.test(to.value)) goLive(frame, range[1].toLowerCase());
    else frame.go(null, { from: keep(from.value, a), to: to.value.trim() ? keep(to.value, b) : isRelative(from.value) ? null : iso(b), range: null, cursor: null });
  };
  return el("details", { class: "menu" }, el("summary", { class: "button" }, "Dates"), el("form", { class: "sheet dates", onsubmit: submit },
    el("label", null, "From ", from), el("label", null, "To ", to), note,
    el("p", { class: "note" }, `In ${zoneName()}: 2026-06-01 14:05, 06:30, yesterday, now-2d, 3h ago. Without “to”: the whole day, or up to now.`),
    el("button", { class: "primary" }, "Show")));
}

const refreshes = [["", "as points come"], ["10s", "each 10 s"], ["1m", "each minute"], ["5m", "each 5 minutes"], ["off", "paused"]];

/** refreshOf returns how many milliseconds pass until a live chart is drawn again: 0 for each point, Infinity for never. */
export const refreshOf = (frame) => (frame.get("refresh") === "off" ? Infinity : parseSpan(frame.get("refresh")) || 0);

export function timeBar(frame) {
  const now = interval(frame);
  const button = (text, label, call, disabled) => el("button", { type: "button", "aria-label": label, title: label, onclick: call, disabled }, text);
  const known = now.live && ranges.includes(now.range), relative = [frame.get("from"), frame.get("to")].filter(isRelative);
  const other = now.range ? "last " + now.range : relative.length ? relative.join(" to ") : "fixed time";
  const range = el("select", { "aria-label": "Range", onchange: (event) => { if (event.target.value) goLive(frame, event.target.value); } },
    known ? null : el("option", { value: "", selected: true }, other),
    ranges.map((r) => el("option", { value: r, selected: known && parseSpan(r) === parseSpan(now.range) }, "last " + r)));
  return el("div", { class: "timebar", role: "group", "aria-label": "Time" },
    button("◀", "Earlier", () => step(frame, -.5)), range, dates(frame, now), button("▶", "Later", () => step(frame, .5), now.live),
    button("−", "Zoom out", () => zoom(frame, 2)), button("+", "Zoom in", () => zoom(frame, .5)));
}

/** rate chooses how often a live chart is drawn; what is of a fixed time can go live. */
export function rate(frame) {
  if (!interval(frame).live) return el("button", { type: "button", title: "The last hour, live", onclick: () => goLive(frame) }, "Go live");
  return el("select", { "aria-label": "Refresh", onchange: (event) => frame.go(null, { refresh: event.target.value || null }, true) },
    refreshes.map(([value, text]) => el("option", { value, selected: (frame.get("refresh") || "") === value }, text)));
}
