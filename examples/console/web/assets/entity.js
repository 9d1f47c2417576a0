// The page entity.
import { state } from "./dom.js";

export const title = "Entity";

export function open(frame, root) {
  root.append(state("empty", "Entity", "There is nothing here yet."));
  return {};
}
