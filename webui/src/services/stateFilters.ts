/** What a list may be narrowed to, and the states that it means. */

import type { State } from "./experiments";

export const STATE_FILTERS: Record<string, { word: string; states: State[] }> = {
  running: { word: "Running", states: ["STATE_RUNNING", "STATE_STARTING", "STATE_PULLING"] },
  queued: { word: "Queued", states: ["STATE_QUEUED"] },
  paused: { word: "Paused", states: ["STATE_PAUSED"] },
  completed: { word: "Completed", states: ["STATE_COMPLETED"] },
  error: { word: "Error", states: ["STATE_ERROR"] },
  canceled: { word: "Canceled", states: ["STATE_CANCELED"] },
};
