/** What hangs on a trial: its checkpoints and its attempts. */

import { answered, api } from "./client";
import { query } from "./live";
import type { components } from "./schema";
import { newsOf } from "./stream/news";

export type Checkpoint = components["schemas"]["Checkpoint"];

export function stepOf(row: Checkpoint): number {
  return Number((row.metadata as { steps_completed?: number }).steps_completed ?? 0);
}

/** Their names and sizes, without folders. */
export function filesOf(row: Checkpoint): [string, number][] {
  return Object.entries(row.resources ?? {})
    .filter(([name]) => !name.endsWith("/"))
    .map(([name, size]) => [name, Number(size)]);
}

/** In bytes. */
export function sizeOf(row: Checkpoint): number {
  return filesOf(row).reduce((all, [, size]) => all + size, 0);
}

export function stateOf(row: Checkpoint): string {
  return row.state.replace("STATE_", "").replaceAll("_", " ").toLowerCase();
}

/** Rows of such a list: more no table shows. */
const ROWS = 200;
const CHECKPOINTS_MS = 5000;

export function checkpointsQuery(id: number) {
  return query({
    queryKey: ["checkpoints", id],
    queryFn: async ({ signal }) => {
      const asked = { limit: ROWS, orderBy: "ORDER_BY_DESC" as const };
      const params = { path: { trialId: id }, query: asked };
      return answered(api.GET("/api/v1/trials/{trialId}/checkpoints", { params, signal }));
    },
    // Nothing tells of a checkpoint by itself: reports come about when it does.
    topics: [`trials/${id}`],
    news: (change) => newsOf(["trial", "metrics"], change, id),
    everyMs: CHECKPOINTS_MS,
  });
}

/** Files of deleted ones are gone. */
const THERE = ["STATE_ACTIVE", "STATE_COMPLETED", "STATE_ERROR", "STATE_PARTIALLY_DELETED"] as const;

/** Checkpoints of all trials of an experiment whose files are there: the best first, or the newest. */
export function experimentCheckpointsQuery(id: number, newest: boolean, limit: number) {
  return query({
    queryKey: ["checkpoints of experiment", id, newest, limit],
    queryFn: async ({ signal }) => {
      const order = newest
        ? ({ sortByAttr: "SORT_BY_END_TIME", orderBy: "ORDER_BY_DESC" } as const)
        : ({ sortByAttr: "SORT_BY_SEARCHER_METRIC" } as const);
      const params = { path: { experimentId: id }, query: { limit, states: [...THERE], ...order } };
      const reply = await answered(api.GET("/api/v1/experiments/{experimentId}/checkpoints", { params, signal }));
      return { rows: reply.checkpoints, total: reply.pagination.total ?? 0 };
    },
    topics: [`experiments/${id}`],
    news: (change) => newsOf(["experiment"], change, id),
    everyMs: CHECKPOINTS_MS,
  });
}

/** Of all its tasks, the newest first. */
export function attemptsQuery(trialId: number, taskIds: string[]) {
  return query({
    queryKey: ["attempts", ...taskIds],
    queryFn: async ({ signal }) => {
      const of = async (taskId: string) =>
        answered(api.GET("/api/v1/tasks/{taskId}", { params: { path: { taskId } }, signal }));
      const answers = await Promise.all([...taskIds].reverse().map(of));
      return answers.flatMap(({ task }) => task.allocations);
    },
    topics: [`trials/${trialId}`],
    news: (change) => newsOf(["trial"], change, trialId),
  });
}
