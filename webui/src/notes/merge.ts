/** What is done to the notes of a project while somebody else may do something to them, too. Pure. */

import type { Note } from "../services/projects";

/** `of`: the note as it was when it was begun. */
export type Change =
  | { kind: "put"; at: number; of: Note; note: Note }
  | { kind: "drop"; at: number; of: Note }
  | { kind: "add"; note: Note; at?: number };

export function same(a: Note | undefined, b: Note | undefined): boolean {
  return a?.name === b?.name && a?.contents === b?.contents;
}

/** Where a note stands now; it may have moved. Undefined: it is there no more as it was. */
export function placeOf(present: readonly Note[], at: number, of: Note): number | undefined {
  if (same(present[at], of)) return at;
  const elsewhere = present.findIndex((each) => same(each, of));
  return elsewhere < 0 ? undefined : elsewhere;
}

/** All notes after a change; undefined: somebody else has changed or deleted the same note. */
export function changed(present: readonly Note[], change: Change): Note[] | undefined {
  if (change.kind === "add") return present.toSpliced(change.at ?? present.length, 0, change.note);
  const place = placeOf(present, change.at, change.of);
  if (place === undefined) return undefined;
  return change.kind === "put" ? present.with(place, change.note) : present.toSpliced(place, 1);
}
