/** What hangs on a trial: its checkpoints and its attempts. */

import { answered, api } from "./client";
import { query } from "./live";
import type { components } from "./schema";
import { newsOf } from "./stream/news";

export type Checkpoint = components["schemas"]["Checkpoint"];

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
