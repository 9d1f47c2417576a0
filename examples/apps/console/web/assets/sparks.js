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
    this.lines = new Map(); // by ID; null while they are read
    this.running = 0;
    this.look = later(120, () => this.next());
  }

  clear() {
    this.lines.clear();
  }

  next() {
    while (this.running < atOnce) {
      const ids = this.wanted().filter((id) => !this.lines.has(id)).slice(0, perRequest);
      if (!ids.length) return;
      if (this.lines.size > keep) this.lines.clear();
      for (const id of ids) this.lines.set(id, null);
      this.running++;
      this.load(ids, points).then((sparks) => {
        for (const { id, t, v } of sparks) this.lines.set(id, { t, v });
        this.changed();
      }, () => {
        for (const id of ids) this.lines.delete(id); // read again when it is looked at again
        return new Promise((resolve) => setTimeout(resolve, 3000));
      }).finally(() => { this.running--; this.next(); });
    }
  }

  /** add adds a new point to a line that has been read. */
  add(id, t, v) {
    const line = this.lines.get(id);
    if (!line || (line.t.length && t <= line.t[line.t.length - 1])) return;
    line.t.push(t);
    line.v.push(numberOf(v));
    if (line.t.length > points) { line.t.shift(); line.v.shift(); }
  }

  /** scale says from where to where the line of an entity goes; "" before it is read. */
  scale(id) {
    const all = this.lines.get(id)?.v.filter((v) => v !== null) || [];
    return all.length ? `from ${number(Math.min(...all))} to ${number(Math.max(...all))}` : "";
  }

  draw(canvas, id, silent) {
    const line = this.lines.get(id), ratio = devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
    if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
    const g = canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    if (!line) return;
    const numbers = line.v.filter((v) => v !== null);
    if (!numbers.length) return;
    const low = Math.min(...numbers), high = Math.max(...numbers), first = line.t[0], last = line.t[line.t.length - 1];
    const x = (t) => 3 + (last > first ? (t - first) / (last - first) : 1) * (width - 6);
    const y = (v) => (high > low ? 3 + (1 - (v - low) / (high - low)) * (height - 6) : height / 2);
    g.strokeStyle = g.fillStyle = colour(silent ? "muted" : "series-1");
    g.lineWidth = 1.4;
    g.lineJoin = "round";
    g.beginPath();
    let open = false, end = null;
    line.t.forEach((t, i) => {
      if (line.v[i] === null) return; // the point lacks the field
      if (open) g.lineTo(x(t), y(line.v[i]));
      else g.moveTo(x(t), y(line.v[i]));
      open = true;
      end = [x(t), y(line.v[i])];
    });
    g.stroke();
    g.beginPath();
    g.arc(end[0], end[1], 2, 0, 7);
    g.fill();
  }
}
