/** What states are called and look like: a shape, a word and a colour, the same everywhere. */

import type { State } from "./experiments";

export type Tone = "ok" | "run" | "wait" | "bad" | "off";

export interface Appearance {
  shape: string;
  word: string;
  tone: Tone;
}

const APPEARANCES: Record<State, Appearance> = {
  STATE_UNSPECIFIED: { shape: "·", word: "Unknown", tone: "off" },
  STATE_ACTIVE: { shape: "▶", word: "Active", tone: "run" },
  STATE_RUNNING: { shape: "▶", word: "Running", tone: "run" },
  STATE_QUEUED: { shape: "◷", word: "Queued", tone: "wait" },
  STATE_PULLING: { shape: "◔", word: "Pulling image", tone: "wait" },
  STATE_STARTING: { shape: "◔", word: "Starting", tone: "wait" },
  STATE_PAUSED: { shape: "‖", word: "Paused", tone: "off" },
  STATE_COMPLETED: { shape: "✓", word: "Completed", tone: "ok" },
  STATE_CANCELED: { shape: "⊘", word: "Canceled", tone: "off" },
  STATE_ERROR: { shape: "✕", word: "Error", tone: "bad" },
  STATE_STOPPING_COMPLETED: { shape: "◌", word: "Completing", tone: "ok" },
  STATE_STOPPING_CANCELED: { shape: "◌", word: "Canceling", tone: "off" },
  STATE_STOPPING_KILLED: { shape: "◌", word: "Killing", tone: "off" },
  STATE_STOPPING_ERROR: { shape: "◌", word: "Failing", tone: "bad" },
  STATE_DELETING: { shape: "◌", word: "Deleting", tone: "off" },
  STATE_DELETED: { shape: "⊘", word: "Deleted", tone: "off" },
  STATE_DELETE_FAILED: { shape: "✕", word: "Delete failed", tone: "bad" },
};

export function appearance(state: State): Appearance {
  return APPEARANCES[state] ?? APPEARANCES.STATE_UNSPECIFIED;
}

const ENDED: ReadonlySet<State> = new Set([
  "STATE_COMPLETED",
  "STATE_CANCELED",
  "STATE_ERROR",
  "STATE_DELETED",
  "STATE_DELETE_FAILED",
]);

export function hasEnded(state: State): boolean {
  return ENDED.has(state);
}
