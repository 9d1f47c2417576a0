// A list of any length of which only the rows in view are elements.

export class VirtualList {
  /** make() returns the element of a row, and fill(element, item, index) shows an item in it. seen() is called after each change. */
  constructor(root, rowHeight, { make, fill, seen }) {
    this.root = root;
    this.rowHeight = rowHeight;
    this.make = make;
    this.fill = fill;
    this.seen = seen;
    this.items = [];
    this.nodes = new Map(); // by index
    this.spare = [];
    this.space = document.createElement("div");
    this.space.className = "space";
    this.space.setAttribute("role", "presentation");
    root.append(this.space);
    this.draw = this.draw.bind(this);
    root.addEventListener("scroll", this.draw, { passive: true });
    this.size = new ResizeObserver(this.draw);
    this.size.observe(root);
  }

  close() { this.size.disconnect(); }

  /** set shows other items. The scroll position stays. */
  set(items) {
    this.items = items;
    this.space.style.height = items.length * this.rowHeight + "px";
    this.draw();
  }

  /** range returns the indexes of the rows in view, the second one excluded. */
  range() {
    const first = Math.floor(this.root.scrollTop / this.rowHeight);
    return [Math.max(0, first), Math.min(this.items.length, first + Math.ceil(this.root.clientHeight / this.rowHeight) + 1)];
  }

  draw() {
    const [first, end] = this.range();
    const from = Math.max(0, first - 4), to = Math.min(this.items.length, end + 4);
    for (const [index, node] of this.nodes) {
      if (index < from || index >= to) {
        this.nodes.delete(index);
        node.hidden = true;
        this.spare.push(node);
      }
    }
    for (let index = from; index < to; index++) {
      let node = this.nodes.get(index);
      if (!node) {
        node = this.spare.pop();
        if (!node) this.space.append(node = this.make());
        node.hidden = false;
        node.style.transform = `translateY(${index * this.rowHeight}px)`;
        this.nodes.set(index, node);
      }
      this.fill(node, this.items[index], index);
    }
    this.seen?.();
  }

  /** reveal scrolls as little as needed to show a row. */
  reveal(index) {
    const top = index * this.rowHeight, view = this.root.clientHeight;
    if (top < this.root.scrollTop) this.root.scrollTop = top;
    else if (top + this.rowHeight > this.root.scrollTop + view) this.root.scrollTop = top + this.rowHeight - view;
    this.draw();
  }
}
