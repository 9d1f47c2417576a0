// Charts by touch: a finger that moves sideways moves the cursor, two fingers zoom. Up and down scrolls the page.

/** touch makes a panel react to fingers. */
export function touch(panel, on) {
  const { over } = panel.plot, fingers = new Map();
  let grip = null; // the times below two fingers when the second one came
  const at = (x) => panel.plot.posToVal(x - over.getBoundingClientRect().left, "x");
  const move = (event) => {
    const box = over.getBoundingClientRect();
    panel.pointed = true;
    panel.plot.setCursor({ left: event.clientX - box.left, top: event.clientY - box.top }, true, true);
  };
  over.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch") return;
    fingers.set(event.pointerId, event.clientX);
    if (fingers.size === 2) grip = [...fingers.values()].map(at);
    else move(event);
  });
  over.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return;
    fingers.set(event.pointerId, event.clientX);
    if (fingers.size === 1) move(event);
  });
  const up = (event) => {
    if (!fingers.has(event.pointerId)) return;
    if (grip && event.type === "pointerup") pinched(grip, [...fingers.values()]);
    grip = null;
    fingers.delete(event.pointerId);
  };
  over.addEventListener("pointerup", up);
  over.addEventListener("pointercancel", up);

  /** pinched shows the interval in which the times of the grip are where the fingers are now. */
  function pinched([a, b], [x, y]) {
    const box = over.getBoundingClientRect(), per = (b - a) / (y - x);
    if (!(Math.abs(y - x) > 10) || !(per > 0) || !Number.isFinite(per)) return;
    on.zoom(a - (x - box.left) * per, a + (box.right - x) * per);
  }
}
