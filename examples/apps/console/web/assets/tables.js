// The tables below a chart: the values as of a time, and the points themselves.
import { el, failed, loading, state } from "./dom.js";
import { both, iso, span, stamp } from "./time.js";
import * as values from "./values.js";

/** asOfTable shows the newest value of each field at the time of the as-of cursor. */
export function asOfTable(page) {
  const node = el("div", { class: "asof" });
  return {
    node,
    async load(signal) {
      const at = page.at, paths = page.fields.map((f) => f.path).slice(0, 32);
      if (!at) {
        node.replaceChildren(el("p", { class: "note" }, "Click a chart for all values as of that time. Drag to zoom in, double-click to zoom out."));
        return;
      }
      const { rows } = await page.frame.api(page.frame.path(page.dataset.name, "asof"), { entity: page.entities, field: paths, time: iso(at) }, signal);
      if (page.at !== at) return;
      const found = new Map(rows.map((row) => [row.id, row]));
      node.replaceChildren(el("div", { class: "card scroll", tabindex: "0", role: "region", "aria-label": "Values as of a time" },
        el("table", null,
          el("caption", null, "As of ", el("time", { datetime: iso(at), title: both(at) }, stamp(at)),
            el("button", { type: "button", class: "quiet", "aria-label": "Remove the as-of cursor", onclick: () => page.frame.go(null, { at: null }, true) }, "✕")),
          el("thead", null, el("tr", null, el("th", { scope: "col" }, "Entity"), el("th", { scope: "col" }, "Point"), paths.map((p) => el("th", { scope: "col", class: "value" }, values.label(p))))),
          el("tbody", null, page.entities.map((id) => {
            const row = found.get(id);
            if (!row) return el("tr", null, el("th", { scope: "row" }, values.nameOf(values.partsOf(id))), el("td", { colspan: paths.length + 1 }, "no point that early"));
            return el("tr", null, el("th", { scope: "row" }, values.nameOf(row.parts)), el("td", { title: both(row.t) }, span(at - row.t) + " before"),
              row.v.map((v, i) => el("td", { class: "value", title: row.at?.[i] ? both(row.at[i]) : null },
                row.bad && v === null ? "unreadable" : values.text(v) + (row.at?.[i] ? " · " + span(at - row.at[i]) + " before" : ""))));
          })))));
    },
  };
}

/** pointsTable shows the points of the first entity page by page. The address has the cursor of the page. */
export function pointsTable(page) {
  return {
    async load(signal) {
      const { frame } = page, paths = page.fields.map((f) => f.path).slice(0, 32), oldest = frame.get("order") === "oldest";
      page.below.replaceChildren(loading("the points"));
      page.note.textContent = page.entities.length > 1 ? "The table has the points of the first entity. The file has those of all." : "";
      const fixed = frame.get("cursor") && page.tableInterval; // a cursor is only valid for the interval of its first page
      const { from, to } = fixed || page.view;
      page.tableInterval = { from, to };
      let answer;
      try {
        answer = await frame.api(frame.path(page.dataset.name, "points"), {
          entity: page.entities[0], field: paths, from: iso(from), to: iso(to), size: 100, cursor: frame.get("cursor"), order: oldest ? "oldest" : "newest",
        }, signal);
      } catch (problem) {
        if (signal.aborted) return;
        page.below.replaceChildren(failed(problem, () => frame.go(null, { cursor: null })));
        return;
      }
      if (!answer.points.length) {
        page.below.replaceChildren(state("empty", "No points", "The entity has no points in this time."));
        return;
      }
      const next = { cursor: answer.next, from: iso(from), to: iso(to), range: null };
      const head = el("tr", null, el("th", { scope: "col", "aria-sort": oldest ? "ascending" : "descending" },
        el("button", { type: "button", class: "quiet", onclick: () => frame.go(null, { order: oldest ? null : "oldest", cursor: null }) }, "Time " + (oldest ? "▲" : "▼"))),
      paths.map((p) => el("th", { scope: "col", class: "value" }, values.label(p))));
      page.below.replaceChildren(el("div", { class: "card scroll", tabindex: "0", role: "region", "aria-label": "Points" },
        el("table", null, el("thead", null, head), el("tbody", null, answer.points.map((point) => {
          const ms = Date.parse(point.time);
          return el("tr", null, el("th", { scope: "row", title: both(ms) }, el("time", { datetime: point.time }, stamp(ms))),
            point.v.map((v) => el("td", { class: "value" }, point.bad ? "unreadable" : values.text(v))));
        })))),
      el("div", { class: "toolbar" },
        frame.get("cursor") ? el("button", { type: "button", onclick: () => frame.go(null, { cursor: null }) }, "First page") : null,
        answer.next ? el("button", { type: "button", onclick: () => frame.go(null, next) }, oldest ? "Later points" : "Earlier points") : el("span", { class: "note" }, "These are all.")));
    },
  };
}
