// Elements without a framework. Text is always set as text, so names from the store are never read as HTML.

/** el returns an element. Attributes that begin with "on" are listeners; null leaves an attribute or a child out. */
export function el(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "class") node.className = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** say reports something to users of screen readers. */
export function say(text) {
  document.getElementById("news").textContent = text;
}

/** state returns what stands in place of data: loading, empty, failed or forbidden. */
export function state(kind, title, detail, ...actions) {
  const role = kind === "failed" || kind === "forbidden" ? "alert" : "status";
  return el("div", { class: "state " + kind, role }, el("h2", null, title), detail ? el("p", null, detail) : null, actions.length ? el("p", { class: "actions" }, actions) : null);
}

/** loading is grey bars where the data will be. */
export const loading = (what) => el("div", { class: "state loading", role: "status" }, el("span", { class: "hidden" }, "Loading " + what),
  ["", "", "", ""].map(() => el("span", { class: "bone", "aria-hidden": "true" })));

/** passes reports whether a problem may go away by itself: the server cannot be reached, is busy, or failed. Too much to read stays so. */
export const passes = ({ status }) => !status || status >= 500 && status !== 504;

/** problemLine is a problem in one line, where the newer data would be. */
export const problemLine = (problem, again) => el("p", { class: "problem", role: "alert" }, el("span", null, problem.message),
  el("button", { type: "button", onclick: again }, "Retry"));

/** failed shows a problem, with a button that tries again. */
export function failed(problem, again) {
  if (problem.status === 401) {
    const next = location.pathname + location.search;
    return state("forbidden", "The session is over", "Log in again to continue where you are.",
      el("a", { class: "button primary", href: "/login?why=over&next=" + encodeURIComponent(next) }, "Log in"));
  }
  if (problem.status === 403) {
    return state("forbidden", "Not allowed", problem.message, el("a", { class: "button", href: "/login?add=1" }, "Add a token"));
  }
  const title = { 404: "Not found", 410: "Deleted", 429: "Over a limit", 504: "Too much to read" }[problem.status] || "That did not work";
  return state("failed", title, problem.message + (problem.instance ? ` The log has it as ${problem.instance}.` : ""),
    again ? el("button", { type: "button", onclick: again }, "Retry") : null);
}

/** absent says that the tenant, or the dataset of the address, has no points. Whether there is one of this name, the tenant does not learn. */
export const absent = (frame, dataset = frame.get("dataset")) => state("empty", "No points yet",
  `The tenant ${frame.tenant} has no points${dataset ? " in a dataset " + dataset : ""}. They appear here as soon as the first one is stored.`,
  ...(dataset ? [el("a", { class: "button", href: frame.address("fleet", { dataset: null }) }, "Open another dataset")] : []));

/** later returns a function that calls another one once, some time after the last call. */
export function later(ms, call) {
  let timer = 0;
  return (...args) => { clearTimeout(timer); timer = setTimeout(() => call(...args), ms); };
}

/** eachFrame returns a function that calls another one at the next frame, once, however often it is called. */
export function eachFrame(call) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; call(); });
  };
}
