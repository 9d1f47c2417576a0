// The controls of time: the range, zoom, and a step back and forward. All of them change the address.
import { el } from "./dom.js";
import { forInput, fromInput, interval, iso, parseSpan, ranges } from "./time.js";

export const timeKeys = [
  ["+ and −", "zoom in and out"], ["← and →", "earlier and later"], ["0", "the last hour, live"], ["v", "chart or table"], ["Esc", "remove the as-of cursor"],
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
  const { from, to, live, range } = interval(frame);
  if (live) {
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

export function timeBar(frame) {
  const now = interval(frame);
  const button = (text, label, call, disabled) => el("button", { type: "button", "aria-label": label, title: label, onclick: call, disabled }, text);
  const known = now.live && ranges.includes(now.range);
  const range = el("select", { "aria-label": "Range", onchange: (event) => { if (event.target.value) goLive(frame, event.target.value); } },
    known ? null : el("option", { value: "", selected: true }, now.live ? "last " + now.range : "fixed time"),
    ranges.map((r) => el("option", { value: r, selected: known && parseSpan(r) === parseSpan(now.range) }, "last " + r)));
  const from = el("input", { type: "datetime-local", step: "1", value: forInput(now.from), "aria-label": "From" });
  const to = el("input", { type: "datetime-local", step: "1", value: forInput(now.to), "aria-label": "To" });
  const note = el("p", { class: "note", role: "status" });
  const fixed = el("details", { class: "menu" }, el("summary", { class: "button" }, "Dates"), el("div", { class: "sheet" },
    el("label", null, "From ", from), el("label", null, "To ", to), note,
    el("button", {
      type: "button", class: "primary",
      onclick: () => {
        const a = fromInput(from.value), b = fromInput(to.value);
        if (a < b) show(frame, a, b);
        else note.textContent = "“From” has to be before “to”.";
      },
    }, "Show")));
  return el("div", { class: "timebar", role: "group", "aria-label": "Time" },
    button("◀", "Earlier", () => step(frame, -.5)), range, fixed, button("▶", "Later", () => step(frame, .5), now.live),
    button("−", "Zoom out", () => zoom(frame, 2)), button("+", "Zoom in", () => zoom(frame, .5)),
    now.live ? null : button("Live", "The last hour, live", () => goLive(frame)));
}
