// Small lines of the newest points of entities. Only those of rows in view are read, a few entities per request.
import { later } from "./dom.js";
import { number, numberOf } from "./values.js";
import { colour } from "./theme.js";

const points = 60, perRequest = 20, atOnce = 2, keep = 2000;

export class Sparks {
  /** wanted() returns the IDs of the rows in view; load(ids) reads their points; changed() is called when some have come. */
  constructor({ wanted, load, changed }) {
    this.wanted = wanted;
    this.load = load;
    this.changed = changed;
    this.lines = new Map(); // by ID, those of its fields; null while they are read
    this.running = 0;
    this.version = 0; // of the newest line
    this.look = later(120, () => this.next());
  }

  next() {
    while (this.running < atOnce) {
      const ids = this.wanted().filter((id) => !this.lines.has(id)).slice(0, perRequest);
      if (!ids.length) return;
      if (this.lines.size > keep) this.lines.clear();
      for (const id of ids) this.lines.set(id, null);
      this.running++;
      this.load(ids, points).then((sparks) => {
        for (const { id, t, v } of sparks) this.lines.set(id, v.map((values) => lineOf(t, values || [], ++this.version)));
        this.changed();
      }, () => {
        for (const id of ids) this.lines.delete(id); // read again when it is looked at again
        return new Promise((resolve) => setTimeout(resolve, 3000));
      }).finally(() => { this.running--; this.next(); });
    }
  }

  /** add adds a new point to the line of the nth field, if that has been read. */
  add(id, n, t, value) {
    const line = this.lines.get(id)?.[n], x = numberOf(value);
    if (!line || x === null || line.t.length && t <= line.t[line.t.length - 1]) return;
    line.t.push(t);
    line.v.push(x);
    line.version = ++this.version;
    if (line.t.length > points) { line.t.shift(); line.v.shift(); }
  }

  /** scale says from where to where a line goes; "" before it is read. */
  scale(id, n) {
    const all = this.lines.get(id)?.[n]?.v;
    return all?.length ? `from ${number(Math.min(...all))} to ${number(Math.max(...all))}` : "";
  }

  /** draw draws a line into a canvas of a size in CSS pixels, unless it has just this one. */
  draw(canvas, id, n, { silent, width, height, theme }) {
    const line = this.lines.get(id)?.[n], ratio = devicePixelRatio || 1, drawn = `${id} ${line?.version} ${silent} ${theme} ${ratio} ${width}`;
    if (canvas.drawn === drawn) return;
    canvas.drawn = drawn;
    canvas.width = Math.round(width * ratio); // which clears it
    canvas.height = Math.round(height * ratio);
    if (!line?.v.length) return;
    const g = canvas.getContext("2d"), low = Math.min(...line.v), high = Math.max(...line.v), first = line.t[0], last = line.t[line.t.length - 1];
    const x = (t) => 3 + (last > first ? (t - first) / (last - first) : 1) * (width - 6);
    const y = (v) => (high > low ? 3 + (1 - (v - low) / (high - low)) * (height - 6) : height / 2);
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.strokeStyle = g.fillStyle = colour(silent ? "muted" : "series-1");
    g.lineWidth = 1.4;
    g.lineJoin = "round";
    g.beginPath();
    line.t.forEach((t, i) => (i ? g.lineTo(x(t), y(line.v[i])) : g.moveTo(x(t), y(line.v[i]))));
    g.stroke();
    g.beginPath();
    g.arc(x(last), y(line.v[line.v.length - 1]), 2, 0, 7);
    g.fill();
  }
}

/** lineOf leaves out the points without a number. */
function lineOf(t, v, version) {
  const at = v.flatMap((x, i) => (x === null ? [] : [i]));
  return { t: at.map((i) => t[i]), v: at.map((i) => v[i]), version };
}
