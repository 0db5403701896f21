/** What the state of an experiment lets one do, whom the master lets do it, and what it becomes at once. */

import type { Verb } from "../services/actions";
import type { Experiment, State } from "../services/experiments";
import type { User } from "../services/session";

const RUNS: ReadonlySet<State> = new Set([
  "STATE_ACTIVE",
  "STATE_QUEUED",
  "STATE_PULLING",
  "STATE_STARTING",
  "STATE_RUNNING",
]);
const STOPS: ReadonlySet<State> = new Set([
  "STATE_STOPPING_COMPLETED",
  "STATE_STOPPING_CANCELED",
  "STATE_STOPPING_KILLED",
  "STATE_STOPPING_ERROR",
]);
const ENDED: ReadonlySet<State> = new Set(["STATE_COMPLETED", "STATE_CANCELED", "STATE_ERROR"]);

export function lives(state: State): boolean {
  return RUNS.has(state) || state === "STATE_PAUSED";
}

type Standing = Pick<Experiment, "state" | "archived" | "unmanaged"> & Partial<Pick<Experiment, "continuable">>;

const ALLOWED: Record<Verb | "move" | "continue", (experiment: Standing) => boolean> = {
  pause: ({ state, unmanaged }) => RUNS.has(state) && !unmanaged,
  activate: ({ state, unmanaged }) => state === "STATE_PAUSED" && !unmanaged,
  cancel: ({ state }) => lives(state),
  kill: ({ state }) => lives(state) || STOPS.has(state),
  archive: ({ state, archived }) => !archived && (ENDED.has(state) || state === "STATE_DELETE_FAILED"),
  unarchive: ({ archived }) => archived ?? false,
  delete: ({ state }) => ENDED.has(state) || state === "STATE_DELETE_FAILED",
  move: ({ state, archived }) => !archived && state !== "STATE_DELETING",
  continue: ({ state, archived, unmanaged, continuable }) =>
    (ENDED.has(state) && !archived && !unmanaged && continuable) ?? false,
};

/** Whether its state lets one do it; the master has the last word. */
export function allows(experiment: Standing, verb: keyof typeof ALLOWED): boolean {
  return ALLOWED[verb](experiment);
}

/** Owners and administrators change what is there. */
export function mayChange(me: User, owner: number | null | undefined): boolean {
  return me.admin === true || me.id === owner;
}

/** What it is at once, before the master has answered. */
export const BECOMES: Record<Verb, Partial<Experiment>> = {
  pause: { state: "STATE_PAUSED" },
  activate: { state: "STATE_ACTIVE" },
  cancel: { state: "STATE_STOPPING_CANCELED" },
  kill: { state: "STATE_STOPPING_KILLED" },
  archive: { archived: true },
  unarchive: { archived: false },
  delete: { state: "STATE_DELETING" },
};
