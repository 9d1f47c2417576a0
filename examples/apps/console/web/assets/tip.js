// The tooltip of a page: what all panels have at the cursor.
import { eachFrame, el } from "./dom.js";
import { stamp } from "./time.js";
import { swatch } from "./legend.js";

export class Tip {
  /** panels() returns those of the page; the node is placed in root. */
  constructor(root, panels) {
    this.panels = panels;
    this.node = el("div", { class: "tip", "aria-hidden": "true", hidden: true });
    root.append(this.node);
    this.draw = eachFrame(() => this.drawNow());
  }

  drawNow() {
    const panels = this.panels(), here = panels.find((p) => p.pointed && p.cursor !== null);
    this.node.hidden = !here || here.dragging;
    if (this.node.hidden) return;
    const at = here.cursor, pixel = (here.view.to - here.view.from) / here.width();
    this.node.replaceChildren(el("time", null, stamp(Math.round(at / 1000) * 1000)), ...panels.map((panel) => el("dl", null, panel.valuesAt(at).flatMap((v) => [
      el("dt", null, v.colour !== undefined ? swatch(v.colour) : v.state ? swatch(v.state) : null, panel.lines?.length > 1 ? v.name : panel.name),
      el("dd", null, v.text, v.range ? el("small", null, v.range) : null, v.t !== undefined && Math.abs(v.t - at) >= Math.max(2000, 4 * pixel) ? el("small", null, " at " + stamp(Math.round(v.t)).slice(11)) : null),
    ]))));
    this.place(here);
  }

  /** place puts the tooltip next to the cursor, on the side that has room for it, and below the top of the window. */
  place(panel) {
    const root = this.node.offsetParent?.getBoundingClientRect(), over = panel.plot.over.getBoundingClientRect();
    if (!root) return;
    const x = over.left - root.left + panel.plot.cursor.left, { offsetWidth: width, offsetHeight: height } = this.node;
    const left = x + 14 + width <= root.width ? x + 14 : Math.max(0, x - 14 - width);
    const y = Math.min(Math.max(over.top + Math.max(0, panel.plot.cursor.top) - height / 2, 60), Math.max(60, innerHeight - height - 8));
    this.node.style.transform = `translate(${Math.round(left)}px, ${Math.round(y - root.top)}px)`;
  }
}
