/** Which lines are fetched for those in view: whole blocks, and the next one before it is looked at. */

import { WINDOW } from "../services/output";

/** From where to where, the end not included, of `count` places; none where `last` is before `first`. */
export function blocks(first: number, last: number, count: number): { first: number; end: number } {
  if (last < first) return { first: 0, end: 0 };
  const around = WINDOW / 2;
  return {
    first: Math.max(0, Math.floor((first - around) / WINDOW) * WINDOW),
    end: Math.min(count, Math.ceil((last + 1 + around) / WINDOW) * WINDOW),
  };
}
