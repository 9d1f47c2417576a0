// Marks of charts: thresholds of a field and notes at a time. The address has them, so a link shows them, too.
import { el } from "./dom.js";
import { iso, parseTime, stamp, textOf } from "./time.js";
import { withUnit, unitOf } from "./units.js";
import { label, visible } from "./values.js";

const most = 20, longest = 80;

/** thresholdsOf returns those of the address, {field, value}: threshold=speed_kmh:80. */
export const thresholdsOf = (frame) => frame.all("threshold").slice(0, most).map((text) => {
  const end = text.lastIndexOf(":"), value = text.slice(end + 1).trim();
  return { field: text.slice(0, end), value: value ? Number(value) : NaN, text };
}).filter(({ value }) => Number.isFinite(value));

/** notesOf returns those of the address, {at, text}: note=2026-06-01T12:00:00Z the new pump. */
export const notesOf = (frame) => frame.all("note").slice(0, most).map((text) => {
  const end = text.indexOf(" ");
  return { at: Date.parse(text.slice(0, end)), text: text.slice(end + 1, end + 1 + longest), whole: text };
}).filter(({ at, text }) => at > 0 && text);

/** marksMenu is the menu that adds marks and removes them. fields are the names of those that are drawn as lines. */
export function marksMenu(frame, fields) {
  const thresholds = thresholdsOf(frame), notes = notesOf(frame), problem = el("p", { class: "note", role: "status" });
  const remove = (name, all, one) => el("button", { type: "button", class: "quiet", "aria-label": "Remove " + one, onclick: () => frame.go(null, { [name]: all.filter((text) => text !== one) }, true) }, "✕");
  const field = el("select", { "aria-label": "Field of the threshold" }, fields.map((path) => el("option", { value: path }, label(path))));
  const value = el("input", { "aria-label": "Value of the threshold", inputmode: "decimal", placeholder: "value", size: 8 });
  const time = el("input", { "aria-label": "Time of the note", value: frame.get("at") ? textOf(Date.parse(frame.get("at"))) : "now", size: 19 });
  const text = el("input", { "aria-label": "Text of the note", placeholder: "text", maxlength: longest, size: 16 });
  const add = (check, name, one) => (event) => {
    event.preventDefault();
    if (!check()) { problem.textContent = name === "note" ? "A note needs a time, such as now-2h, and a text." : "A threshold needs a number."; return; }
    frame.go(null, { [name]: [...frame.all(name), one()].slice(-most) }, true);
  };
  return el("details", { class: "menu" }, el("summary", { class: "button" }, "Marks"), el("div", { class: "sheet marks" },
    el("ul", { class: "chips" }, thresholds.map((t) => el("li", { class: "chip" }, `${label(t.field)} ${withUnit(t.value, unitOf(t.field))}`, remove("threshold", frame.all("threshold"), t.text))),
      notes.map((n) => el("li", { class: "chip" }, `${stamp(n.at)} ${visible(n.text)}`, remove("note", frame.all("note"), n.whole)))),
    fields.length ? el("form", { onsubmit: add(() => value.value.trim() && Number.isFinite(Number(value.value)), "threshold", () => `${field.value}:${Number(value.value)}`) },
      field, value, el("button", null, "Add a threshold")) : null,
    el("form", { onsubmit: add(() => text.value.trim() && parseTime(time.value, frame.now()) > 0, "note", () => iso(parseTime(time.value, frame.now())) + " " + text.value.trim()) },
      time, text, el("button", null, "Add a note")), problem));
}
