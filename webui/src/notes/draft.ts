/**
 * A note that somebody is writing. It is kept for the tab: a session may end, the tab be reloaded. It belongs to one
 * user: who logs in as somebody else does not see it.
 */

import type { Note } from "../services/projects";

export interface NoteDraft {
  /** Which note, as it was when this was begun; absent: a new one. */
  at?: number;
  of?: Note;
  name: string;
  contents: string;
}

function keyOf(userId: number, projectId: number): string {
  return `tenax.note.${userId}.${projectId}`;
}

export function keptNote(userId: number, projectId: number): NoteDraft | undefined {
  try {
    const text = sessionStorage.getItem(keyOf(userId, projectId));
    return text ? (JSON.parse(text) as NoteDraft) : undefined;
  } catch {
    return undefined;
  }
}

/** Undefined: nothing is written any more. */
export function keepNote(userId: number, projectId: number, draft: NoteDraft | undefined): void {
  try {
    if (draft) sessionStorage.setItem(keyOf(userId, projectId), JSON.stringify(draft));
    else sessionStorage.removeItem(keyOf(userId, projectId));
  } catch {
    // No room, or none allowed: it is kept as long as the page.
  }
}
