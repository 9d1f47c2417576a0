// Starts the console: the session, the navigation, keys that work on all pages.
import { get } from "./api.js";
import { el, failed, loading } from "./dom.js";
import { Frame } from "./frame.js";
import { openHelp } from "./help.js";
import { applyTheme, nextTheme, theme } from "./theme.js";
import { otherZone, zoneName } from "./time.js";
import * as compare from "./compare.js";
import * as entity from "./entity.js";
import * as fleet from "./fleet.js";
import * as health from "./health.js";
import * as keys from "./keys.js";

const pages = { fleet, entity, compare, keys, health };
const root = document.getElementById("page");

function isTyping(target) {
  return target instanceof HTMLElement && (target.matches("input, select, textarea") || target.isContentEditable);
}

function navigation(frame) {
  const nav = document.getElementById("nav");
  nav.replaceChildren(...Object.entries(pages).map(([name, page]) => el("a", {
    href: frame.address(name, name === frame.name ? {} : { dataset: frame.get("dataset") }),
    "aria-current": name === frame.name ? "page" : null,
    onclick(event) {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      frame.go(name);
    },
  }, page.title)));
  const tenants = document.getElementById("tenant");
  const names = [...new Set([frame.tenant, ...frame.session.tenants])].filter(Boolean); // an operator may have none yet
  tenants.replaceChildren(...names.map((name) => el("option", { value: name, selected: name === frame.tenant }, name)),
    el("option", { value: " add" }, "Add a token…"));
}

function tools(frame) {
  const zone = document.getElementById("zone"), themes = document.getElementById("theme");
  const label = () => {
    zone.textContent = zoneName();
    zone.setAttribute("aria-label", "Times are in " + zoneName() + ". Change the zone");
    themes.textContent = { auto: "◐", light: "☀", dark: "☾" }[theme()];
    themes.setAttribute("aria-label", "Theme: " + theme() + ". Change it");
    themes.title = "Theme: " + theme();
  };
  zone.addEventListener("click", () => { otherZone(); label(); });
  themes.addEventListener("click", () => { nextTheme(); label(); });
  document.getElementById("help").addEventListener("click", () => openHelp(pages, frame.name));
  document.getElementById("tenant").addEventListener("change", (event) => {
    if (event.target.value === " add") location.assign("/login?add=1");
    else frame.go("fleet", { tenant: event.target.value, dataset: null });
  });
  label();
}

let firstKey = 0; // when g was pressed

function onKey(frame, event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const to = { f: "fleet", e: "entity", c: "compare", k: "keys", h: "health" }[event.key];
  if (firstKey && Date.now() - firstKey < 1500 && to) frame.go(to);
  else if (event.key === "?") openHelp(pages, frame.name);
  else if (event.key === "t") document.getElementById("theme").click();
  else if (event.key === "u") document.getElementById("zone").click();
  else if (event.key !== "g" && !frame.page?.key?.(event)) return;
  firstKey = event.key === "g" ? Date.now() : 0;
  event.preventDefault();
}

/** banner says that the session is over for as long as it is. */
function banner() {
  const address = () => "/login?why=over&next=" + encodeURIComponent(location.pathname + location.search);
  const link = el("a", { class: "button primary", href: address(), onclick() { link.href = address(); } }, "Log in");
  const node = el("div", { class: "banner", role: "alert" });
  root.before(node);
  window.addEventListener("sessionover", () => { if (!node.firstChild) node.append(el("span", null, "The session is over. What is shown is not updated."), link); });
  window.addEventListener("session", () => node.replaceChildren());
}

async function start() {
  applyTheme();
  root.replaceChildren(loading("the session"));
  let session;
  try {
    session = await get("/api/session");
  } catch (problem) {
    root.replaceChildren(failed(problem, start));
    return;
  }
  if (!session.tenants.length && !session.operator) {
    root.replaceChildren(failed({ status: 401 }));
    return;
  }
  root.replaceChildren();
  const frame = new Frame(session, pages, root);
  window.addEventListener("shown", () => navigation(frame));
  document.querySelector("[data-home]").addEventListener("click", (event) => { event.preventDefault(); frame.go("fleet"); });
  tools(frame);
  banner();
  document.addEventListener("keydown", (event) => onKey(frame, event));
  frame.show();
}

start();
