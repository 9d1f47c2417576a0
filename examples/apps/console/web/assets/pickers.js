// Controls that several pages have.
import { el, later } from "./dom.js";
import { label, nameOf } from "./values.js";

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

let pickers = 0; // for IDs

/** entityPicker finds entities of a dataset by a part of their names, and calls choose(id) with the one that the user takes. */
export function entityPicker(frame, dataset, name, choose) {
  const id = "picker-" + ++pickers;
  let found = [], at = -1, asked = 0;
  const list = el("ul", { class: "sheet options", role: "listbox", id, "aria-label": name, hidden: true, onpointerdown: (event) => event.preventDefault() });
  const box = el("input", {
    type: "search", role: "combobox", placeholder: name, "aria-label": name, "aria-controls": id, "aria-expanded": "false", "aria-autocomplete": "list",
    maxlength: 500, spellcheck: "false", autocomplete: "off", oninput: later(150, look), onfocus: look, onblur: () => open(false),
    onkeydown: (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step && found.length) mark((at + step + found.length) % found.length);
      else if (event.key === "Enter" && found.length) take(found[Math.max(0, at)].id);
      else if (event.key === "Escape" && !list.hidden) open(false);
      else return;
      event.preventDefault();
      event.stopPropagation();
    },
  });

  function open(shown) {
    list.hidden = !shown;
    box.setAttribute("aria-expanded", String(shown));
    if (!shown) mark(-1);
  }

  function mark(n) {
    at = n;
    [...list.querySelectorAll("[role=option]")].forEach((node, i) => node.setAttribute("aria-selected", String(i === at)));
    if (at < 0) box.removeAttribute("aria-activedescendant");
    else { box.setAttribute("aria-activedescendant", `${id}-${at}`); list.children[at].scrollIntoView({ block: "nearest" }); }
  }

  function take(entity) {
    box.value = "";
    open(false);
    choose(entity);
  }

  async function look() {
    const turn = ++asked;
    let says = "";
    try {
      const answer = await frame.api(frame.path(dataset, "entities"), { name: box.value, limit: 20 });
      if (turn !== asked) return;
      found = answer.entities;
      says = !found.length ? "No entity has this text in its name." + (answer.more ? ` Only the first ${answer.looked} were looked at.` : "") : answer.more ? "There are more: type a part of the name." : "";
    } catch (problem) {
      if (turn !== asked) return;
      [found, says] = [[], problem.message];
    }
    list.replaceChildren(...found.map((e, i) => el("li", { role: "option", id: `${id}-${i}`, "aria-selected": "false", onclick: () => take(e.id) }, nameOf(e.parts))),
      says ? el("li", { class: "note", role: "presentation" }, says) : "");
    open(document.activeElement === box);
  }
  return el("div", { class: "picker menu" }, box, list);
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
