// Requests to the server: JSON with retries, and live streams.

/** Problem is why a request failed, in words for the user. */
export class Problem extends Error {
  constructor(status, detail, instance) {
    super(detail || "The server could not be reached.");
    this.status = status;
    this.instance = instance;
  }
}

/** problemOf returns the problem of a response. Without a session, the window gets the event "sessionover", and "session" when it has one. */
async function problemOf(response) {
  if (response.status === 401) window.dispatchEvent(new Event("sessionover"));
  try {
    const body = await response.json();
    return new Problem(response.status, body.detail || body.title, body.instance);
  } catch {
    return new Problem(response.status, `The server answered ${response.status}.`);
  }
}

/** pause waits, and fails when the signal aborts. */
export function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
  });
}

/** query returns the text of parameters. A list gives a parameter several times; null leaves one out. */
export function query(params) {
  const out = new URLSearchParams();
  for (const [name, value] of Object.entries(params || {})) {
    if (value === null || value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [value]) out.append(name, one);
  }
  const text = out.toString();
  return text && "?" + text;
}

const most = 4; // requests at once; a browser has six connections per host, and streams need some
let running = 0;
const waiting = [];

async function turn() {
  if (running < most) { running++; return; }
  await new Promise((resolve) => waiting.push(resolve));
}

function done() {
  const next = waiting.shift();
  if (next) next();
  else running--;
}

/** get returns the JSON of an address. It tries again twice if the server is busy. */
export async function get(address, params, signal) {
  for (let attempt = 0; ; attempt++) {
    await turn();
    let response, problem;
    try {
      signal?.throwIfAborted();
      // Without no-store, Chromium lets a request wait up to 20 s for an earlier one of the same address, in case the answer can be shared.
      response = await fetch(address + query(params), { signal, cache: "no-store", headers: { Accept: "application/json" } });
      if (response.ok) {
        window.dispatchEvent(new Event("session"));
        return await response.json();
      }
      problem = await problemOf(response);
    } catch (err) {
      if (signal?.aborted) throw err;
      problem = err instanceof Problem ? err : new Problem(0);
    } finally {
      done();
    }
    const again = problem.status === 503 || problem.status === 429 || problem.status === 0;
    if (!again || attempt === 2) throw problem;
    await pause(Math.min(10, Number(response?.headers.get("Retry-After")) || 1) * 1000, signal);
  }
}

/**
 * follow reads a live stream until the signal aborts, and connects again when it breaks. It pauses while the tab is hidden. Without a
 * session it tries again each ten seconds: the user may log in in another tab.
 * params() are those of the next connection. on has the functions open, points(rows), missed, and state(text, problem), where text is
 * "connecting", "live", "paused", "waiting", "over" or "failed".
 */
export async function follow(address, params, on, signal) {
  for (let wait = 1000; !signal.aborted;) {
    try {
      await visible(on, signal);
      on.state("connecting");
      const hidden = whenHidden(signal);
      try {
        await readStream(address + query(params()), (name, data) => {
          if (name === "open") { wait = 1000; on.state("live"); on.open?.(data); }
          if (name === "points") on.points(data.rows);
          if (name === "missed") on.missed?.(data);
          // A login in another tab ends the session, and this tab has the cookie of the new one: only the next connection says.
          if (name === "problem") throw new Problem(data.status === 401 ? 0 : data.status, data.detail, data.instance);
        }, hidden.signal);
      } finally {
        hidden.forget();
      }
    } catch (err) {
      if (signal.aborted) return;
      if (document.hidden) continue;
      const problem = err instanceof Problem ? err : new Problem(0);
      if (problem.status === 401) wait = 10000;
      else if (problem.status >= 400 && problem.status < 500 && problem.status !== 429) { on.state("failed", problem); return; }
      on.state(problem.status === 401 ? "over" : "waiting", problem);
    }
    try { await pause(wait, signal); } catch { return; }
    wait = Math.min(30000, wait * 2);
  }
}

/** whenHidden returns a signal that also aborts when the tab is hidden, until forget is called. */
function whenHidden(signal) {
  const control = new AbortController(), over = new AbortController();
  document.addEventListener("visibilitychange", () => { if (document.hidden) control.abort(); }, { signal: over.signal });
  return { signal: AbortSignal.any([signal, control.signal]), forget: () => over.abort() };
}

async function visible(on, signal) {
  if (!document.hidden) return;
  on.state("paused");
  await new Promise((resolve, reject) => {
    document.addEventListener("visibilitychange", resolve, { once: true });
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** readStream calls on(event, data) for each server-sent event until the stream ends, or is silent for three heartbeats. */
async function readStream(address, on, signal) {
  const silent = new AbortController();
  let beat = 5000, timer;
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silent.abort(new Problem(0, "The server does not answer.")), 3 * beat);
  };
  heard();
  let reader;
  try {
    const response = await fetch(address, { signal: AbortSignal.any([signal, silent.signal]), headers: { Accept: "text/event-stream" } });
    if (!response.ok) throw await problemOf(response);
    window.dispatchEvent(new Event("session"));
    reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = ""; ;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      text += value;
      for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
        const event = /^event: (.*)\ndata: (.*)$/.exec(text.slice(0, end));
        if (!event) continue;
        const data = JSON.parse(event[2]);
        if (event[1] === "open") { beat = data.beat_ms; heard(); }
        on(event[1], data);
      }
    }
  } finally {
    clearTimeout(timer);
    reader?.cancel().catch(() => {});
  }
}
