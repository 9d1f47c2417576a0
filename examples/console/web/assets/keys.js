// The page keys.
import { state } from "./dom.js";

export const title = "Keys";

export function open(frame, root) {
  root.append(state("empty", "Keys", "There is nothing here yet."));
  return {};
}
