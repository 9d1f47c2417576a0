// The frame around the pages: the address is the state, and the frame shows the page that it names.
import { get, query } from "./api.js";
import { el, failed, state } from "./dom.js";

/**
 * Frame is what a page gets. A page is a module with
 *   export const title = "Fleet";
 *   export const keys = [["/", "search"]];              // for the help; optional
 *   export function open(frame, root) { return { update(), key(event), close() }; }
 * open fills root. update() is called when the parameters of the address have changed, key when a key was pressed outside of an
 * input; it returns true if it has used the key. close() ends requests and streams. All three are optional.
 */
export class Frame {
  constructor(session, pages, root) {
    this.session = session;
    this.pages = pages; // by name
    this.root = root;
    this.page = null;
    this.skew = 0;
    this.shown = "";
    this.datasetsOf = new Map();
    window.addEventListener("popstate", () => this.show());
    window.addEventListener("themechange", () => this.page?.update?.("theme"));
    window.addEventListener("zonechange", () => { this.reopen(); });
  }

  get name() { return location.pathname.slice(1); }
  get tenant() { return this.get("tenant") || this.session.tenants[0]; }

  /** get returns a parameter of the address, or null; all returns all values of one. */
  get(name) { return new URLSearchParams(location.search).get(name); }
  all(name) { return new URLSearchParams(location.search).getAll(name); }

  /** now is the server's clock, as far as it is known. */
  now() { return Date.now() + this.skew; }
  clock(serverMillis) { this.skew = serverMillis - Date.now(); }

  /** address returns the address of a page. On the same page, other parameters stay; null removes one. */
  address(page, set = {}) {
    const params = {};
    for (const name of new Set(new URLSearchParams(location.search).keys())) {
      if (page === this.name || name === "tenant" || name === "dataset") params[name] = this.all(name);
    }
    params.tenant = this.tenant;
    return "/" + page + query({ ...params, ...set });
  }

  /** go shows another page or other parameters. Replacing leaves no step for the back button. */
  go(page, set, replace = false) {
    const address = this.address(page || this.name, set);
    if (address === location.pathname + location.search) return;
    history[replace ? "replaceState" : "pushState"](null, "", address);
    this.show();
  }

  /** api returns the JSON of a query of this tenant. */
  api(path, params, signal) {
    return get("/api/" + encodeURIComponent(this.tenant) + path, params, signal);
  }

  /** path returns the address of a query of a dataset. */
  path(dataset, name) { return "/" + encodeURIComponent(dataset) + "/" + name; }

  /** datasets returns those in which the tenant has points. It asks the server again after ten seconds. */
  async datasets(signal) {
    const known = this.datasetsOf.get(this.tenant);
    if (known && Date.now() - known.at < 10000) return known.all;
    const { datasets } = await this.api("/datasets", null, signal);
    if (datasets.length) this.datasetsOf.set(this.tenant, { at: Date.now(), all: datasets });
    return datasets;
  }

  /** forget asks for the datasets again at the next call. */
  forget() { this.datasetsOf.delete(this.tenant); }

  reopen() {
    this.shown = "";
    this.show();
  }

  /** focusHeading moves the focus to the heading of a new page, which may come only with its data, unless the user has moved on. */
  focusHeading() {
    const focus = () => {
      const h1 = this.root.querySelector("h1");
      h1?.setAttribute("tabindex", "-1");
      h1?.focus({ preventScroll: true });
      return h1;
    };
    this.heading?.disconnect();
    if (focus()) return;
    this.root.focus();
    this.heading = new MutationObserver(() => {
      if (document.activeElement !== document.body && document.activeElement !== this.root || focus()) this.heading.disconnect();
    });
    this.heading.observe(this.root, { childList: true, subtree: true });
  }

  show() {
    const name = this.pages[this.name] ? this.name : "fleet";
    const key = name + " " + this.tenant;
    if (key === this.shown) {
      this.page?.update?.("address");
    } else {
      this.page?.close?.();
      this.page = null;
      this.root.replaceChildren();
      this.root.className = "page-" + name;
      this.shown = key;
      document.title = this.pages[name].title + " · Tidemark console";
      if (!this.tenant && name !== "health" && name !== "keys") {
        this.root.append(state("empty", "No tenant yet", "Tenants appear when they have points.", el("button", { type: "button", onclick() { location.reload(); } }, "Look again")));
      } else if (!this.session.operator && !this.session.tenants.includes(this.tenant)) {
        this.root.append(failed({ status: 403, message: `This session may not see the tenant ${this.tenant}.` }));
      } else {
        this.page = this.pages[name].open(this, this.root);
      }
      if (this.visited) this.focusHeading();
      this.visited = true;
    }
    window.dispatchEvent(new Event("shown"));
  }
}
