// The page compare.
import { state } from "./dom.js";

export const title = "Compare";

export function open(frame, root) {
  root.append(state("empty", "Compare", "There is nothing here yet."));
  return {};
}
