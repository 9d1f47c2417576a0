// The dialog with the keys.
import { el } from "./dom.js";

const everywhere = [
  ["g then f, e, c, k, h", "go to fleet, entity, compare, keys, health"],
  ["t", "change the theme"],
  ["u", "change between your time zone and UTC"],
  ["?", "this help"],
  ["Esc", "leave an input or a dialog"],
];

const list = (keys) => el("dl", { class: "keys" }, keys.flatMap(([key, what]) => [el("dt", null, el("kbd", null, key)), el("dd", null, what)]));

export function openHelp(pages, name) {
  const page = pages[name] || pages.fleet;
  const dialog = el("dialog", { "aria-labelledby": "help-title", class: "help" },
    el("h2", { id: "help-title" }, "Keys"), list(everywhere),
    page.keys ? el("h3", null, "On this page: " + page.title) : null, page.keys ? list(page.keys) : null,
    el("form", { method: "dialog" }, el("button", { class: "primary" }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
