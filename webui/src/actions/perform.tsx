/**
 * How something is done to experiments: shown at once, then asked for, and what came of it is said.
 *
 * What can be taken back is done without a question, and can be undone; before what cannot, one is asked. Of many, each
 * is done by itself: what was refused is listed with its reason, and shown again as it is.
 */

import type { QueryClient } from "@tanstack/react-query";
import { count } from "../format";
import { act, type Result, type Target, type Verb } from "../services/actions";
import { Refused } from "../services/client";
import type { Experiment, ExperimentSearch, Found } from "../services/experiments";
import { closeDialog, type Failure, openDialog, say } from "../ui/overlays";
import { Confirm } from "./Confirm";
import { allows, BECOMES } from "./states";

/** Experiments that something is to be done to: those that are known here, and how all of them are named. */
export interface Chosen {
  target: Target;
  known: Experiment[];
}

export function sizeOf({ target }: Chosen): number {
  return "ids" in target ? target.ids.length : target.count;
}

/** `experiment 7`, `3 experiments`. */
export function named(chosen: Chosen): string {
  const size = sizeOf(chosen);
  return "ids" in chosen.target && size === 1 ? `experiment ${chosen.target.ids[0]}` : `${count(size)} experiments`;
}

interface Manner {
  /** On a button. */
  title: string;
  past: string;
  /** What takes it back. */
  undo?: Verb;
  /** What one should know before it is done for good. */
  warning?: string;
}

export const VERBS: Record<Verb, Manner> = {
  pause: { title: "Pause", past: "Paused", undo: "activate" },
  activate: { title: "Resume", past: "Resumed", undo: "pause" },
  cancel: {
    title: "Stop",
    past: "Stopping",
    warning: "Trials save a checkpoint, then end. It can be continued later, unless its search stops trials early.",
  },
  kill: {
    title: "Kill",
    past: "Killing",
    warning: "Trials end at once, and what they did since their latest checkpoint is lost.",
  },
  archive: { title: "Archive", past: "Archived", undo: "unarchive" },
  unarchive: { title: "Unarchive", past: "Unarchived", undo: "archive" },
  delete: {
    title: "Delete",
    past: "Deleting",
    warning: "Its checkpoints, metrics and output are deleted, too, and cannot be recovered.",
  },
};

/** Does it, after a question where it is for good. `done`: once it was asked for. */
export function perform(client: QueryClient, verb: Verb, chosen: Chosen, done?: () => void): void {
  const { title, warning } = VERBS[verb];
  if (!warning) {
    void carryOut(client, verb, chosen, done);
    return;
  }
  const go = () => {
    closeDialog();
    void carryOut(client, verb, chosen, done);
  };
  const names = chosen.known.map((each) => `${each.id} ${each.name}`);
  openDialog((close) => (
    <Confirm
      title={`${title} ${named(chosen)}?`}
      names={names}
      size={sizeOf(chosen)}
      warning={warning}
      yes={title}
      onYes={go}
      onNo={close}
    />
  ));
}

async function carryOut(client: QueryClient, verb: Verb, chosen: Chosen, done?: () => void): Promise<void> {
  const { past, undo } = VERBS[verb];
  // What is so already is no change, and nothing that Undo should take back.
  const changes = new Set(chosen.known.filter((each) => allows(each, verb)).map((each) => each.id));
  const hit = (experiment: Experiment) => allows(experiment, verb) && isChosen(chosen.target, experiment, changes);
  const takeBack = await patch(client, hit, BECOMES[verb]);
  done?.();
  const results = await outcome(act(verb, narrowed(chosen.target, verb)), `${VERBS[verb].title} ${named(chosen)}`);
  if (!results) {
    takeBack();
  } else {
    const well = results.filter((result) => !result.error).map((result) => result.id);
    const reverted = "ids" in chosen.target ? well.filter((id) => changes.has(id)) : verb in CHANGING ? well : [];
    report(
      past,
      results,
      chosen,
      () => {
        if (undo) void carryOut(client, undo, { target: { ids: reverted }, known: rowsOf(client, reverted) });
      },
      undo !== undefined && reverted.length > 0,
    );
  }
  await refresh(client);
}

/** Of all that match, what these change at all. */
const CHANGING: Partial<Record<Verb, Partial<ExperimentSearch>>> = {
  pause: { states: ["STATE_ACTIVE"] },
  activate: { states: ["STATE_PAUSED"] },
  archive: { archived: false },
};

function narrowed(target: Target, verb: Verb): Target {
  if ("ids" in target) return target;
  const { states, ...rest } = CHANGING[verb] ?? {};
  return { ...target, search: { ...target.search, ...rest, states: target.search.states ?? states } };
}

function isChosen(target: Target, experiment: Experiment, changes: Set<number>): boolean {
  return "ids" in target ? changes.has(experiment.id) : !target.without.includes(experiment.id);
}

/** What the master answered; undefined, and said, where it answered nothing for any of them. */
export async function outcome<T>(asked: Promise<T>, what: string): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const isRefused = error instanceof Refused && error.status < 500;
    const became = isRefused ? "this was not done" : "it is not known whether this was done";
    say({ text: `${what}: ${became}`, failures: [{ id: "", reason }] });
    return undefined;
  }
}

/** Says what became of each. */
export function report(past: string, results: Result[], chosen: Chosen, undo: () => void, canUndo: boolean): void {
  const failures: Failure[] = results
    .filter((result) => result.error)
    .map((result) => ({ id: String(result.id), reason: result.error ?? "" }));
  const well = results.length - failures.length;
  if (failures.length === 0) {
    const text = `${past} ${results.length === 1 ? `experiment ${results[0]?.id}` : `${count(well)} experiments`}`;
    say({ text, undo: canUndo ? undo : undefined });
    return;
  }
  const text =
    results.length === 1
      ? `${named(chosen)} was refused`
      : `${past}: ${count(well)} of ${count(results.length)} experiments; ${count(failures.length)} refused`;
  say({ text, failures, undo: canUndo ? undo : undefined });
}

interface Cached {
  experiment?: Experiment;
  rows?: Experiment[];
}

const KINDS = ["experiments", "experiment"];

/** Shows a change of whatever `hit` says, wherever it is shown. Returns how to take it back. */
export async function patch(
  client: QueryClient,
  hit: (experiment: Experiment) => boolean,
  change: Partial<Experiment>,
): Promise<() => void> {
  // An answer that is on its way is of before.
  await Promise.all(KINDS.map((kind) => client.cancelQueries({ queryKey: [kind] })));
  const changed = (each: Experiment) => (hit(each) ? { ...each, ...change } : each);
  const former = KINDS.flatMap((kind) => client.getQueriesData<Cached>({ queryKey: [kind] }));
  for (const [key, data] of former) {
    if (!data) continue;
    const experiment = data.experiment && changed(data.experiment);
    client.setQueryData(key, {
      ...data,
      ...(experiment && { experiment }),
      ...(data.rows && { rows: data.rows.map(changed) }),
    });
  }
  return () => {
    for (const [key, data] of former) client.setQueryData(key, data);
  };
}

/** Experiments as they are shown now. */
export function rowsOf(client: QueryClient, ids: number[]): Experiment[] {
  const rows = new Map<number, Experiment>();
  for (const kind of KINDS) {
    for (const [, data] of client.getQueriesData<Cached & Partial<Found>>({ queryKey: [kind] })) {
      for (const row of [...(data?.rows ?? []), ...(data?.experiment ? [data.experiment] : [])]) rows.set(row.id, row);
    }
  }
  return ids.flatMap((id) => rows.get(id) ?? []);
}

/** Asks again for what an action changes. */
export async function refresh(client: QueryClient): Promise<void> {
  const kinds = ["experiments", "experiment", "trials", "trial", "queue", "pools", "agents"];
  await Promise.all(kinds.map((kind) => client.invalidateQueries({ queryKey: [kind] })));
}
