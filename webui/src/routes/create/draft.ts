/**
 * What somebody is about to submit. It outlives the page that it is typed into: a session may end, a tab be reloaded.
 *
 * Texts are kept for the tab, the files of a folder for as long as it is not reloaded: they may be too large. It belongs
 * to one user: who logs in as somebody else does not see it.
 */

import type { CodeFile } from "../../services/submissions";

export interface Draft {
  config: string;
  script: string;
  scriptName: string;
  projectId: number;
  template: string;
  /** Of the folder that was chosen; its name. */
  folder?: { name: string; files: CodeFile[] };
}

const PREFIX = "tenax.draft.";
const folders = new Map<string, Draft["folder"]>();

/** `source`: which experiment it is a fork of. */
export function draftKey(userId: number, source: number | undefined): string {
  return `${PREFIX}${userId}.${source ?? "new"}`;
}

export function keptDraft(key: string): Draft | undefined {
  try {
    const text = sessionStorage.getItem(key);
    return text ? { ...(JSON.parse(text) as Draft), folder: folders.get(key) } : undefined;
  } catch {
    return undefined;
  }
}

export function keepDraft(key: string, { folder, ...texts }: Draft): void {
  folders.set(key, folder);
  try {
    sessionStorage.setItem(key, JSON.stringify(texts));
  } catch {
    // No room, or none allowed: it is kept as long as the page.
  }
}

export function dropDraft(key: string): void {
  folders.delete(key);
  sessionStorage.removeItem(key);
}
