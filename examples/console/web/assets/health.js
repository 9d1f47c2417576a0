// The page health.
import { state } from "./dom.js";

export const title = "Health";

export function open(frame, root) {
  root.append(state("empty", "Health", "There is nothing here yet."));
  return {};
}
