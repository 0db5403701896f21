/** What changes mean for what is shown: values that they carry are written into the rows, the rest is fetched again. Pure. */

import type { Agent } from "../cluster";
import type { Experiment, ExperimentSearch, Found, Trial, TrialSort, TrialsFound } from "../experiments";
import { type Sort, sortsOf } from "../sorts";
import type { Change } from "./messages";
import { differing, type News } from "./subject";

const EXPERIMENT_FIELDS = [
  ...([
    "projectId",
    "userId",
    "name",
    "description",
    "labels",
    "state",
    "archived",
    "progress",
    "numTrials",
    "bestTrialId",
  ] as const),
  ...(["bestTrialSearcherMetric", "checkpointCount", "endTime", "reason"] as const),
];
const TRIAL_FIELDS = [
  ...(["state", "runId", "restarts", "progress", "searcherMetricValue", "totalBatchesProcessed", "endTime"] as const),
];
/** Columns of the list by which it may be sorted and that go with a field of a change; others never change. */
const SORTED_BY: Record<string, keyof Experiment> = {
  name: "name",
  description: "description",
  state: "state",
  progress: "progress",
  searcherMetricsVal: "bestTrialSearcherMetric",
  numTrials: "numTrials",
  checkpointCount: "checkpointCount",
  endTime: "endTime",
  duration: "endTime",
  projectId: "projectId",
};
const TRIALS_SORTED_BY: Partial<Record<TrialSort, readonly (keyof Trial)[]>> = {
  SORT_BY_STATE: ["state"],
  SORT_BY_BEST_VALIDATION_METRIC: ["searcherMetricValue"],
  SORT_BY_BATCHES_PROCESSED: ["totalBatchesProcessed"],
  SORT_BY_DURATION: ["endTime"],
  SORT_BY_RESTARTS: ["restarts"],
};

/** One experiment with what a change says of it; itself where that is nothing new. */
export function patchedExperiment<E extends Experiment>(row: E, change: Change): E {
  const differ = differing<Experiment>(row, change, EXPERIMENT_FIELDS);
  if (!differ) return row;
  const patched = { ...row, ...differ };
  if (differ.endTime) patched.duration = secondsBetween(row.startTime, differ.endTime);
  return patched;
}

/** Whether its notes are others now, which are not said themselves. */
function isNoted(row: Experiment, change: Change): boolean {
  return change.notesDigest !== undefined && change.notesDigest !== row.notesDigest;
}

function secondsBetween(start: string, end: string): number {
  return Math.max(0, Math.floor((Date.parse(end) - Date.parse(start)) / 1000));
}

/** Whether an experiment is one of those that a list is about, as far as a change tells. */
function belongs(search: ExperimentSearch, change: Change): boolean {
  if (change.deleted) return false;
  if (search.projectId !== undefined && change.projectId !== search.projectId) return false;
  if (search.userId !== undefined && change.userId !== search.userId) return false;
  if (search.states?.length && !search.states.some((state) => state === change.state)) return false;
  if (search.name && !String(change.name).toLowerCase().includes(search.name.toLowerCase())) return false;
  return !change.archived || (search.archived ?? false);
}

/** For one window of a list of experiments. */
export function newsOfExperiments(search: ExperimentSearch, offset: number, change: Change, found: Found): News<Found> {
  if (change.kind === "job_queue") {
    const waits = found.rows.some((row) => row.state === "STATE_QUEUED" && row.resourcePool === change.id);
    return waits ? { refetch: true } : undefined;
  }
  if (change.kind !== "experiment") return undefined;
  const at = found.rows.findIndex((row) => row.id === change.id);
  const belonging = belongs(search, change);
  const row = found.rows[at];
  if (row === undefined) return { refetch: maybeElsewhere(search, offset, change, found, belonging) };
  if (change.deleted) return { refetch: true };
  const patched = patchedExperiment(row, change);
  const noted = isNoted(row, change);
  if (patched === row && !noted) return undefined;
  // What was typed is read by the master alone, and so are metrics.
  const moves = ({ column }: Sort) => {
    const by = SORTED_BY[column];
    return column.includes(".") || (by !== undefined && row[by] !== patched[by]);
  };
  const moved = !!search.query || sortsOf(search.sort).some(moves);
  return { data: { ...found, rows: found.rows.with(at, patched) }, refetch: !belonging || moved || noted };
}

/** Whether a change of an experiment that is not in a window may change what is in it, or how many there are. */
function maybeElsewhere(
  search: ExperimentSearch,
  offset: number,
  change: Change,
  found: Found,
  belonging: boolean,
): boolean {
  if (change.deleted) return true;
  // It may have left, or come, by what it was changed to.
  const narrowed = (search.states?.length ?? 0) > 0 || !!search.name || !!search.query;
  if (!belonging) return narrowed || change.archived === true || search.projectId !== undefined;
  if (narrowed) return true;
  const moving = ({ column }: Sort) => SORTED_BY[column] !== undefined || column.includes(".");
  if (sortsOf(search.sort).some(moving)) return true;
  // In an order that never changes only a new one matters: its number is above all that are known.
  const newest = found.rows.reduce((most, row) => Math.max(most, row.id), 0);
  if (search.sort === "-id") return offset === 0 && Number(change.id) > newest;
  return offset + found.rows.length >= found.total && Number(change.id) > newest;
}

/** For one window of the trials of an experiment. */
export function newsOfTrials(
  sort: TrialSort,
  experimentId: number,
  change: Change,
  found: TrialsFound,
): News<TrialsFound> {
  if (change.kind !== "trial" || (change.experimentId !== experimentId && !change.deleted)) return undefined;
  const at = found.rows.findIndex((row) => row.id === change.id);
  const row = found.rows[at];
  if (row === undefined) {
    const newest = found.rows.reduce((most, each) => Math.max(most, each.id), 0);
    return { refetch: change.deleted || Number(change.id) > newest || TRIALS_SORTED_BY[sort] !== undefined };
  }
  if (change.deleted) return { refetch: true };
  const differ = differing<Trial>(row, change, TRIAL_FIELDS);
  if (!differ) return undefined;
  const moved = (TRIALS_SORTED_BY[sort] ?? []).some((field) => field in differ);
  // Why it ended, and how long it ran, come with the whole of it.
  const another = "state" in differ || "runId" in differ;
  return { data: { ...found, rows: found.rows.with(at, { ...row, ...differ }) }, refetch: moved || another };
}

/** For one trial. */
export function newsOfTrial(change: Change, trial: Trial): News<Trial> {
  if (change.kind === "metrics" && change.id === trial.id) {
    const steps = Object.entries(change.steps as Record<string, number>);
    const training = steps.filter(([group]) => !SYSTEM_GROUPS.has(group)).map(([, step]) => step);
    const newest = Math.max(trial.totalBatchesProcessed, ...training);
    return newest === trial.totalBatchesProcessed ? undefined : { data: { ...trial, totalBatchesProcessed: newest } };
  }
  if (change.kind !== "trial" || change.id !== trial.id) return undefined;
  if (change.deleted) return { refetch: true };
  const differ = differing<Trial>(trial, change, TRIAL_FIELDS);
  if (!differ) return undefined;
  return { data: { ...trial, ...differ }, refetch: "state" in differ || "runId" in differ };
}

/** Reports about the machine, whose steps are no steps of the training. */
const SYSTEM_GROUPS = new Set(["gpu", "cpu", "memory", "disk", "network"]);

/** Whether machines of a trial reported. */
export function isOfMachines(change: Change, trialId: number): boolean {
  if (change.kind !== "metrics" || change.id !== trialId) return false;
  return Object.keys(change.steps as Record<string, number>).some((group) => SYSTEM_GROUPS.has(group));
}

/** For a curve: whether its group has a report that it does not show yet. */
export function newsOfSeries(trials: readonly number[], group: string, newest: number, change: Change, until?: number) {
  if (change.kind !== "metrics" || !trials.includes(Number(change.id))) return undefined;
  const steps = change.steps as Record<string, number>;
  const step = steps[group];
  // A run that goes on from an earlier step takes some back.
  if (step === undefined || step === newest) return undefined;
  return until !== undefined && step > until ? undefined : { refetch: true };
}

/** For machines: how each stands is written, its slots are fetched again. */
export function newsOfAgents(change: Change, agents: Agent[]): News<Agent[]> {
  if (change.kind !== "agent") return undefined;
  const at = agents.findIndex((agent) => agent.id === change.id);
  const agent = agents[at];
  if (agent === undefined || change.deleted) return { refetch: true };
  const differ = differing<Agent>(agent, change, ["enabled", "draining", "connected"]);
  return { data: differ ? agents.with(at, { ...agent, ...differ }) : undefined, refetch: true };
}

/** For what is fetched as a whole whenever something of one of these kinds changed; of one thing with this id. */
export function newsOf(kinds: readonly string[], change: Change, id?: number | string): News<never> {
  return kinds.includes(change.kind) && (id === undefined || change.id === id) ? { refetch: true } : undefined;
}

/** Of an experiment and where its job stands. */
export function newsOfExperiment<S extends { experiment: Experiment }>(change: Change, shown: S): News<S> {
  const { experiment } = shown;
  if (change.kind === "job_queue") {
    return experiment.state === "STATE_QUEUED" && change.id === experiment.resourcePool ? { refetch: true } : undefined;
  }
  if (change.kind !== "experiment" || change.id !== experiment.id) return undefined;
  if (change.deleted) return { refetch: true };
  const patched = patchedExperiment(experiment, change);
  const noted = isNoted(experiment, change);
  if (patched === experiment && !noted) return undefined;
  const whole = patched.state !== experiment.state || patched.numTrials !== experiment.numTrials;
  const elsewhere = patched.projectId !== experiment.projectId || patched.userId !== experiment.userId;
  return { data: { ...shown, experiment: patched }, refetch: whole || elsewhere || noted };
}

/** Pools of which something waits: their queues say when a reason changes. */
export function waitingPools(rows: readonly Experiment[]): string[] {
  const pools = rows.filter((row) => row.state === "STATE_QUEUED" && row.resourcePool).map((row) => row.resourcePool);
  return [...new Set(pools)].map((pool) => `job-queues/${pool}`);
}
