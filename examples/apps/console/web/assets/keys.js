// The page keys: what the heatmap's recorder found, its picture for the operator, and the advice on the keys of a dataset.
import { el, failed, loading } from "./dom.js";
import { again, bytes, duration, number, panel } from "./figures.js";
import { get } from "./api.js";
import { Heat } from "./heat.js";
import { stamp } from "./time.js";

export const title = "Keys";

const nowhere = () => el("p", { class: "elsewhere" },
  "This process does not record which keys are used. A process with a heatmap.Recorder does, for its own requests.");

function finding(f) {
  return el("li", { class: "finding" }, el("h3", null, f.rule), el("p", { class: "note" },
    [[f.tenant, f.dataset].filter((x) => x).join(" "), f.rate ? number(f.rate) + " rows a second" : "", f.share ? Math.round(100 * f.share) + " % of all rows" : ""].filter((x) => x).join(" · ")),
  f.key ? el("p", null, el("code", null, f.key)) : null, f.reason ? el("p", null, f.reason) : null, el("p", null, el("b", null, "What helps: "), f.remedy));
}

function findings(of, got) {
  const time = got.recorded ? ` Recorded over the last ${duration((got.to - got.from) / 1000)}, by this process.` : "";
  const sums = got.recorded && got.totals ? ` ${number(got.totals.writes)} rows written, ${number(got.totals.reads)} read, ${number(got.totals.failures)} failed, ${bytes(got.totals.bytes)}.` : "";
  return panel("Load of " + of, `What the table could not spread over its servers.${time}${sums}`, !got.recorded ? nowhere()
    : got.findings.length === 0 ? el("p", { class: "good" }, "Nothing was found. Findings begin at 500 rows a second.")
      : el("ul", { class: "plain" }, got.findings.map(finding)));
}

/** picture draws the recording, and reads it again when the user asks for it: it may be large. */
function picture(frame, signal) {
  const heat = new Heat(frame, signal), place = el("div"), time = el("span", { class: "note" });
  const draw = el("button", { type: "button", onclick: read }, "Draw again");
  async function read() {
    if (!heat.data) place.replaceChildren(loading("the recording"));
    draw.disabled = true;
    try {
      const got = await get("/api/table/heatmap", null, signal);
      if (!heat.data) place.replaceChildren(heat.node);
      heat.set(got);
      time.textContent = got.columns.length ? `${stamp(Math.round(got.from))} to ${stamp(Math.round(got.to))}, in ${got.about.split(":")[0]}` : "Nothing was recorded.";
    } catch (problem) {
      if (!signal.aborted) place.replaceChildren(failed(problem, read));
    } finally {
      draw.disabled = false;
    }
  }
  read();
  return [panel("Picture", "Time to the right, row keys from top to bottom, colour by rate. It has the keys of all tenants.", el("p", { class: "heat-about" }, draw, time), place), heat];
}

const severities = { info: "note", warning: "warn", critical: "bad" };

function advice(dataset, got) {
  const about = `From ${number(got.entities)} entities${got.share < 1 ? `, ${Math.round(100 * got.share)} % of all` : ""}, at ${stamp(got.at)}; made again after ${duration(got.every_ms / 1000)}.`;
  return panel("Advice on the keys of " + dataset, about, got.advice.length === 0 ? el("p", { class: "good" }, "There is nothing to remark about these keys.")
    : el("ul", { class: "plain" }, got.advice.map((a) => el("li", { class: "finding" },
      el("h3", null, el("span", { class: severities[a.severity] }, a.severity), " ", a.cause, a.field ? ` in ${a.field}` : ""),
      el("p", null, a.found), el("p", null, a.why), el("p", null, el("b", null, "What helps: "), a.remedy)))));
}

export function open(frame, root) {
  const control = new AbortController();
  const { signal } = control;
  const name = frame.tenant;
  let heat = null;
  const load = el("div", { class: "reports wide" }), drawing = el("div", { class: "reports wide" });
  root.append(el("div", { class: "toolbar" }, el("h1", null, "Keys"), el("span", { class: "count" }, "read again every 10 s")), load);
  if (frame.session.operator) {
    again("the recording", load, () => get("/api/table/keys", null, signal), (got) => {
      if (got.recorded && !heat) {
        const [node, made] = picture(frame, signal);
        heat = made;
        drawing.append(node);
      }
      return [findings("the table", got)];
    }, signal);
    root.append(drawing);
  } else {
    again("the recording", load, () => frame.api("/keys", null, signal), (got) => [findings(name, got),
      got.recorded ? el("p", { class: "note" }, "The picture of the key space has the keys of all tenants, so only the operator's token shows it.") : null], signal);
  }
  const advised = el("div", { class: "reports wide" });
  const choice = el("select", { id: "advised", onchange(event) { frame.go(null, { dataset: event.target.value }); } });
  const toolbar = el("div", { class: "toolbar", hidden: true }, el("label", { for: "advised" }, "Dataset of " + name), choice);
  if (name) root.append(toolbar, advised);
  let shown = "";

  async function show() {
    const datasets = await frame.datasets(signal);
    toolbar.hidden = datasets.length === 0;
    if (datasets.length === 0) {
      advised.replaceChildren(el("p", { class: "note" }, "The tenant has no points yet."));
      return;
    }
    const wanted = frame.get("dataset");
    const dataset = datasets.some((d) => d.name === wanted) ? wanted : datasets[0].name;
    choice.replaceChildren(...datasets.map((d) => el("option", { value: d.name, selected: d.name === dataset }, d.name)));
    if (dataset === shown) return;
    shown = dataset;
    advised.replaceChildren(loading("the advice"));
    const got = await frame.api(frame.path(dataset, "advice"), null, signal);
    if (shown === dataset) advised.replaceChildren(advice(dataset, got));
  }

  async function update() {
    if (heat?.data) heat.update();
    if (!name) return;
    try {
      await show();
    } catch (problem) {
      if (signal.aborted) return;
      shown = "";
      advised.replaceChildren(failed(problem, update));
    }
  }
  update();
  return { update, close() { control.abort(); } };
}
