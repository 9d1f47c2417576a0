// Controls that several pages have.
import { el } from "./dom.js";
import { label } from "./values.js";

/** datasetPicker chooses the dataset of a page. */
export function datasetPicker(frame, datasets, current) {
  return el("select", {
    "aria-label": "Dataset", class: "dataset",
    onchange: (event) => frame.go(frame.name, Object.fromEntries([
      ...["q", "field", "state", "pick", "entity", "at", "cursor"].map((name) => [name, null]), ["dataset", event.target.value]])),
  }, datasets.map((d) => el("option", { value: d.name, selected: d.name === current }, d.name)));
}

/** fieldMenu chooses some of the fields, in a menu of check boxes. */
export function fieldMenu(name, fields, chosen, most, change) {
  const boxes = fields.map((f) => el("input", { type: "checkbox", value: f.path, checked: chosen.includes(f.path) }));
  const read = () => boxes.filter((b) => b.checked).map((b) => b.value);
  const bound = () => { const full = read().length >= most; for (const b of boxes) b.disabled = full && !b.checked; };
  bound();
  const menu = el("details", { class: "menu" }, el("summary", { class: "button" }, name),
    el("div", { class: "sheet", role: "group", "aria-label": name, onchange: () => { bound(); if (read().length) change(read()); } },
      fields.length ? boxes.map((b, i) => el("label", null, b, " ", label(fields[i].path))) : "No fields",
      fields.length > most ? el("p", { class: "note" }, `At most ${most}`) : null));
  menu.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { menu.open = false; menu.firstChild.focus(); event.stopPropagation(); }
  });
  menu.addEventListener("focusout", (event) => { if (event.relatedTarget && !menu.contains(event.relatedTarget)) menu.open = false; });
  return menu;
}

const pillTexts = { connecting: "Connecting", live: "Live", paused: "Paused", waiting: "Reconnecting", over: "Not live", failed: "Not live", fixed: "Fixed time" };

/** livePill shows whether the page is live. */
export function livePill() {
  const text = el("span", null, "Connecting"), node = el("span", { class: "pill connecting", role: "status" }, el("span", { class: "dot", "aria-hidden": "true" }), text);
  return {
    node,
    set(name, problem) {
      node.className = "pill " + name;
      text.textContent = pillTexts[name];
      node.title = problem ? problem.message : "";
    },
  };
}
