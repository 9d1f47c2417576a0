// The page health: what the tenant does and may do, how long its data is kept; and for the operator the writers, the journal, the
// rollups, all tenants, and the plan and forecast of the table. Figures that this process does not have are said to be elsewhere.
import { el } from "./dom.js";
import { again, bytes, duration, facts, level, number, panel, table } from "./figures.js";
import { get } from "./api.js";
import { stamp } from "./time.js";

export const title = "Health";

const elsewhere = (what, where) => el("p", { class: "elsewhere" }, `${what} in this process. ${where}`);

/** untold says why there are no figures by tenant: none are measured, or not yet for long enough. */
const untold = (measured) => (measured ? el("p", { class: "note" }, "The first figures by tenant come within some seconds of the first reads and writes.")
  : el("p", { class: "elsewhere" }, "This process does not measure what tenants do. The figures are in the process that writes, if it has metrics by tenant."));

const limitNames = {
  points_per_second: ["points a second", number], points_burst: ["points at once", number],
  bytes_per_second: ["bytes a second", bytes], bytes_burst: ["bytes at once", bytes],
  entities: ["entities", number], datasets: ["datasets", number], point_bytes: ["bytes of a point", bytes],
  range_length: ["time of a range", String], fan_out: ["requests of a read", number], concurrent_reads: ["reads at once", number],
};

function limits(of) {
  const set = Object.entries(of).map(([name, value]) => {
    const [text, show] = limitNames[name] || [name, String];
    return [text, show(value)];
  });
  return set.length ? facts(set) : el("p", { class: "note" }, "No limit applies to this tenant.");
}

function ownPanels(name, got) {
  const over = got.seconds ? `Over the last ${duration(got.seconds)}, in this process.` : null;
  const t = got.traffic;
  return [
    panel("Traffic of " + name, over, t
      ? facts([["points a second", number(t.points), bytes(t.bytes) + " a second"], ["reads a second", number(t.reads), number(t.rows) + " rows a second"],
        ["refused a second", number(t.refused), "calls over a limit"]])
      : untold(got.measured)),
    panel("Limits of " + name, "As this process applies them.", got.limits ? limits(got.limits)
      : elsewhere("No limits are known", "The processes that write may apply some.")),
    panel("Retention of " + name, "How long points and rollups are kept.", got.kept.length
      ? table("Retention of " + name, [["dataset"], ["class"], ["points"], ["rollups"]],
        got.kept.map((k) => [k.dataset, k.class, policy(k.points), (k.rollups || []).map((r) => `${r.name}: ${policy(r.policy)}`).join(", ") || "none"]))
      : el("p", { class: "note" }, "The tenant has no points yet.")),
  ];
}

/** policy says a garbage collection policy in words where it is simple. */
function policy(text) {
  const age = /^maxage=(\S+)$/.exec(text);
  return text === "never" ? "forever" : age ? "for " + age[1] : text;
}

function kindOf(h) { return h.dataset + (h.kind ? " " + h.kind : ""); }

function storagePanel(name, got) {
  const counted = new Map(got.counted.map((c) => [kindOf(c), c])), classes = Map.groupBy(got.holdings, kindOf);
  const take = (h) => { const c = counted.get(kindOf(h)); counted.delete(kindOf(h)); return [h, c]; }; // a count stands beside the first class
  const rows = [...got.holdings.map(take), ...[...counted.values()].map((c) => [null, c])].map(([h, c]) => {
    const whole = c && kindOf(c) !== got.next, alone = !(classes.get(kindOf(h || c))?.length > 1);
    return [kindOf(h || c), h ? h.class : "–", c ? (whole ? "" : "over ") + number(c.rows) : "–", h ? number(h.cells) : "–", c && whole && alone && !(c.estimated && (h || c.rows < 1000)) ? bytes(c.bytes) : h ? bytes(h.bytes) : "–", h ? bytes(h.day_bytes) : "–"];
  });
  return panel("Storage of " + name, `Before compression, every ${duration(got.every_ms / 1000)}. Rows are counted among the tenant's first 10,000; tidectl tenants usage counts all. The rest is estimated from a sample.`,
    got.failed ? el("p", { class: "note" }, "The table could not be estimated; the log of the console says why.") : null,
    rows.length ? table("Storage of " + name, [["rows of"], ["class"], ["rows", "number"], ["cells", "number"], ["now", "number"], ["a day adds", "number"]], rows)
      : el("p", { class: "note" }, "No rows of this tenant were found."));
}

function tablePanels(got) {
  const f = got.figures;
  const w = f?.writer, j = f?.journal;
  return [
    panel("Writers", "All writers of this process.", w
      ? facts([
        ["in memory", level("points in memory", w.points, w.capacity_points), `${bytes(w.bytes)} of ${bytes(w.capacity_bytes)}`],
        ["oldest point", duration(w.oldest_s), "without an outcome"],
        ["the service", w.down ? "does not answer" : "takes points", `${number(w.in_flight)} of ${number(w.slots)} requests under way`],
        ["since the start", number(w.stored) + " stored", `${number(w.rejected)} rejected, ${number(w.unknown)} unknown, ${number(w.retries)} retries`],
      ]) : elsewhere("No writer runs", "The backlog is in the metrics of the process that writes.")),
    panel("Journal", "Points on disk that are not delivered yet.", j
      ? facts([["on disk", level("bytes in the journal", j.bytes, j.capacity, bytes), number(j.points) + (j.points === 1 ? " point" : " points")], ["dead letters", number(j.dead_letters)]])
      : elsewhere("No writer has a journal", "The backlog of others is in their metrics.")),
    panel("Rollups", "How long the first closed bucket waits for a worker. Reads are correct meanwhile, and slower.", f?.rollups?.length
      ? table("Lag of the rollups", [["rollup"], ["lag", "number"]], f.rollups.map((r) => [`${r.dataset} ${r.rollup}`, duration(r.lag_s)]))
      : elsewhere("No rollup worker runs", "The lag is in the metrics of the process that runs one.")),
    el("div", { class: "whole" }, noisyPanel(got)),
  ];
}

/** noisyPanel lists the tenants by what they write and read, the busiest first. */
function noisyPanel(got) {
  const f = got.figures;
  const known = new Map(got.tenants.map((t) => [t.tenant, t]));
  const traffic = f?.traffic || [];
  for (const t of traffic) if (!known.has(t.tenant)) known.set(t.tenant, { tenant: t.tenant });
  const of = new Map(traffic.map((t) => [t.tenant, t]));
  const nothing = { points: 0, bytes: 0, reads: 0, rows: 0, refused: 0 };
  const load = (t) => (of.get(t.tenant) || nothing).points + (of.get(t.tenant) || nothing).rows;
  const all = [...known.values()].sort((a, b) => load(b) - load(a)).slice(0, 100);
  const sum = [...known.values()].reduce((n, t) => n + load(t), 0);
  const note = f?.seconds ? `Those with most rows, written and read, first; per second over the last ${duration(f.seconds)}, in this process.` : null;
  return panel("Tenants", note, all.length === 0 ? el("p", { class: "note" }, "The table has no tenants yet.")
    : traffic.length === 0 || !f.seconds
      ? [untold(f), el("p", null, all.map((t) => t.tenant).join(", "))]
      : table("Tenants by their load", [["tenant"], ["of all rows"], ["points written", "number"], ["bytes written", "number"], ["reads", "number"], ["rows read", "number"], ["calls refused", "number"]],
        all.map((t) => {
          const x = of.get(t.tenant) || nothing;
          const share = sum ? load(t) / sum : 0;
          return [t.tenant + (t.erased ? " (erased)" : ""), el("span", { class: "level" }, el("meter", { min: 0, max: 1, value: share, "aria-label": "share of the load of " + t.tenant }), el("span", null, Math.round(100 * share) + " %")),
            number(x.points), bytes(x.bytes), number(x.reads), number(x.rows), number(x.refused)];
        })),
  got.more ? el("p", { class: "note" }, "There are more tenants than are listed.") : null);
}

function planPanels(got) {
  const made = `Made again every ${duration(got.every_ms / 1000)}.`;
  const f = got.forecast;
  const last = f && f.whole.weeks.length;
  const size = (x) => [bytes(x.bytes), bytes(x.expired_bytes), bytes(x.day_bytes), last ? bytes(x.weeks[last - 1]) : "", x.steady !== undefined ? bytes(x.steady) : "never"];
  const heads = [["now", "number"], ["expired of it", "number"], ["a day adds", "number"], [last ? `in ${last} weeks` : "later", "number"], ["stops growing at", "number"]];
  return [
    panel("Retention plan", "What the table has and the catalogue does not, or the other way round. " + made, got.items
      ? got.items.length === 0 ? el("p", { class: "good" }, "The table keeps everything as the catalogue says.")
        : el("ul", { class: "plain" }, got.items.map((i) => el("li", null, el("b", null, i.kind), " ", i.family || i.dataset || "",
          i.declared || i.actual ? `: ${i.actual || "nothing"} → ${i.declared || "nothing"}` : "", i.destructive ? el("b", { class: "bad" }, " deletes data") : null,
          (i.notes || []).map((note) => el("small", null, note)))))
      : el("p", { class: "elsewhere" }, "The plan could not be made: " + got.why)),
    panel("Forecast", f ? `Before compression, ${f.basis} from ${number(f.cost.rows)} rows at ${stamp(Date.parse(f.at))}. ${made}` : made, f
      ? [table("Forecast by retention class", [["class"], ...heads], [...f.classes.map((c) => [c.class + (c.policy ? `, ${policy(c.policy)}` : ""), ...size(c)]), ["all", ...size(f.whole)]]),
        f.holdings.length ? table("Storage by tenant", [["tenant"], ["now", "number"], ["a day adds", "number"]], byTenant(f.holdings)) : null]
      : el("p", { class: "elsewhere" }, "The forecast could not be made: " + got.why)),
  ];
}

function byTenant(holdings) {
  const sums = new Map();
  for (const h of holdings) {
    const s = sums.get(h.tenant || "other programs") || { now: 0, day: 0 };
    s.now += h.bytes;
    s.day += h.day_bytes;
    sums.set(h.tenant || "other programs", s);
  }
  return [...sums].sort((a, b) => b[1].now - a[1].now).slice(0, 20).map(([name, s]) => [name, bytes(s.now), bytes(s.day)]);
}

export function open(frame, root) {
  const control = new AbortController();
  const part = (...classes) => el("div", { class: ["reports", ...classes].join(" ") });
  const heading = (text, note) => el("div", { class: "toolbar" }, el("h1", null, text), el("span", { class: "count" }, note));
  const live = "read again every 5 s";
  const own = part(), storage = part();
  const name = frame.tenant;
  if (frame.session.operator) {
    const table = part(), plan = part("wide");
    root.append(heading("The whole table", live), table, plan);
    again("the figures of this process", table, (signal) => get("/api/table/health", null, signal), tablePanels, control.signal);
    again("the plan and the forecast", plan, (signal) => get("/api/table/storage", null, signal), planPanels, control.signal);
  }
  if (name) {
    root.append(heading(name, live), own, storage);
    again("the figures of " + name, own, (signal) => frame.api("/health", null, signal), (got) => ownPanels(name, got), control.signal);
    again("the storage of " + name, storage, (signal) => frame.api("/storage", null, signal), (got) => [storagePanel(name, got)], control.signal);
  }
  return { close() { control.abort(); } };
}
