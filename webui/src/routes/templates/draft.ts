/**
 * A template that somebody is writing. It is kept for the tab: a session may end, the tab be reloaded. It belongs to one
 * user: who logs in as somebody else does not see it.
 */

export interface TemplateDraft {
  /** Of a new one, and where it goes. */
  name: string;
  workspaceId: number;
  text: string;
  /** When the one that it changes had been changed last, as this was begun. */
  of?: string | null;
}

/** `name` undefined: a new one. */
function keyOf(userId: number, name: string | undefined): string {
  return `tenax.template.${userId}.${name === undefined ? "new" : `of ${name}`}`;
}

export function keptTemplate(userId: number, name: string | undefined): TemplateDraft | undefined {
  try {
    const text = sessionStorage.getItem(keyOf(userId, name));
    return text ? (JSON.parse(text) as TemplateDraft) : undefined;
  } catch {
    return undefined;
  }
}

/** Undefined: nothing is written any more. */
export function keepTemplate(userId: number, name: string | undefined, draft: TemplateDraft | undefined): void {
  try {
    if (draft) sessionStorage.setItem(keyOf(userId, name), JSON.stringify(draft));
    else sessionStorage.removeItem(keyOf(userId, name));
  } catch {
    // No room, or none allowed: it is kept as long as the page.
  }
}
