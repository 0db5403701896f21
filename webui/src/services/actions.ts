/** What is done to experiments, trials, jobs and machines; each call answers once the master has done it. */

import { answered, api } from "./client";
import type { ExperimentSearch } from "./experiments";
import type { components } from "./schema";

export type Verb = "pause" | "activate" | "cancel" | "kill" | "archive" | "unarchive" | "delete";
type Filters = components["schemas"]["BulkFilters"];

/** Experiments by number, or all that a search finds but some. */
export type Target = { ids: number[] } | { search: ExperimentSearch; without: number[]; count: number };

export interface Result {
  id: number;
  /** Why not; empty where it was done. */
  error?: string;
}

const PATHS = {
  pause: "/api/v1/projects/{projectId}/experiments/pause",
  activate: "/api/v1/projects/{projectId}/experiments/activate",
  cancel: "/api/v1/projects/{projectId}/experiments/cancel",
  kill: "/api/v1/projects/{projectId}/experiments/kill",
  archive: "/api/v1/projects/{projectId}/experiments/archive",
  unarchive: "/api/v1/projects/{projectId}/experiments/unarchive",
} as const;

/** The number for experiments of any project. */
const ANY = 0;

/** What a target is in a request. A search means here what it means in a list. */
function chosen(target: Target): { experimentIds: number[]; filters?: Filters } {
  if ("ids" in target) return { experimentIds: target.ids };
  const { search, without } = target;
  const filters: Filters = {
    name: search.name ?? null,
    query: search.query ?? null,
    states: search.states ?? [],
    userIds: search.userId === undefined ? [] : [search.userId],
    archived: search.archived ? null : false,
    projectId: search.projectId ?? null,
    labels: [],
    excludedExperimentIds: without,
  };
  return { experimentIds: [], filters };
}

/** To each by itself: what is refused stops no other. */
export async function act(verb: Verb, target: Target): Promise<Result[]> {
  const asked = { params: { path: { projectId: ANY } }, body: chosen(target) };
  if (verb === "delete") {
    return (await answered(api.DELETE("/api/v1/projects/{projectId}/experiments/delete", asked))).results;
  }
  return (await answered(api.POST(PATHS[verb], asked))).results;
}

/** What is done to many trials at once. */
export type TrialVerb = "kill" | "archive" | "unarchive" | "delete";

const TRIAL_PATHS = {
  kill: "/api/v1/runs/kill",
  archive: "/api/v1/runs/archive",
  unarchive: "/api/v1/runs/unarchive",
  delete: "/api/v1/runs/delete",
} as const;

/** To each by itself, of whatever project. */
export async function actOnTrials(verb: TrialVerb, ids: number[]): Promise<Result[]> {
  return (await answered(api.POST(TRIAL_PATHS[verb], { body: { runIds: ids } }))).results;
}

export async function moveExperiments(target: Target, projectId: number): Promise<Result[]> {
  const asked = {
    params: { path: { projectId: ANY } },
    body: { ...chosen(target), destinationProjectId: projectId },
  };
  return (await answered(api.POST("/api/v1/projects/{projectId}/experiments/move", asked))).results;
}

/** What may be edited; what is absent stays. */
export type Edit = components["schemas"]["PatchExperiment"];

export async function editExperiment(id: number, edit: Edit): Promise<void> {
  await answered(
    api.PATCH("/api/v1/experiments/{experimentId}", { params: { path: { experimentId: id } }, body: edit }),
  );
}

export async function continueExperiment(id: number): Promise<string[]> {
  const reply = await answered(api.POST("/api/v1/experiments/continue", { body: { id, overrideConfig: "" } }));
  return reply.notices ?? [];
}

export async function killTrial(id: number): Promise<void> {
  await answered(api.POST("/api/v1/trials/{trialId}/kill", { params: { path: { trialId: id } } }));
}

export type JobChange = components["schemas"]["QueueControl"];

export async function changeJob(change: JobChange): Promise<void> {
  await answered(api.POST("/api/v1/job-queues", { body: { updates: [change] } }));
}

/** What a machine or a slot is asked to do; drain: what runs may end by itself. */
export type Switch = "enable" | "drain" | "disable";

export async function switchAgent(agentId: string, to: Switch): Promise<void> {
  const params = { path: { agentId } };
  if (to === "enable") await answered(api.POST("/api/v1/agents/{agentId}/enable", { params }));
  else await answered(api.POST("/api/v1/agents/{agentId}/disable", { params, body: { drain: to === "drain" } }));
}

export async function switchSlot(agentId: string, slotId: number, to: Switch): Promise<void> {
  const params = { path: { agentId, slotId } };
  if (to === "enable") await answered(api.POST("/api/v1/agents/{agentId}/slots/{slotId}/enable", { params }));
  else {
    const body = { drain: to === "drain" };
    await answered(api.POST("/api/v1/agents/{agentId}/slots/{slotId}/disable", { params, body }));
  }
}

/** Its files go; what is known of it stays. */
export async function deleteCheckpoint(uuid: string): Promise<void> {
  await answered(api.DELETE("/api/v1/checkpoints", { body: { checkpointUuids: [uuid] } }));
}
