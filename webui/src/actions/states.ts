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

/**
 * Why an experiment cannot be continued, in the order in which the master looks; undefined: nothing here speaks against it.
 *
 * Whether all of its trials have completed, so that none is left to go on, the master alone knows.
 */
export function whyNotContinued(experiment: Standing, may: boolean): string | undefined {
  const { state, archived, unmanaged, continuable } = experiment;
  const reasons: [boolean, string][] = [
    [!may, "Only the owner of the experiment and administrators can continue it. You can fork it."],
    [unmanaged === true, "The experiment is trained outside of this cluster: continue it where its script runs."],
    [RUNS.has(state), "The experiment is still running."],
    [state === "STATE_PAUSED", "The experiment is only paused: resume it."],
    [!continuable, "The search stops trials early, and what it stopped stays stopped. Fork the experiment instead."],
    [STOPS.has(state), "The experiment is still stopping."],
    [!ENDED.has(state), "The experiment is being deleted, or could not be."],
    [archived === true, "The experiment is archived: unarchive it first."],
  ];
  return reasons.find(([holds]) => holds)?.[1];
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
