/** The queue of a pool. */

import { answered, api } from "./client";
import { query } from "./live";
import type { components } from "./schema";
import { newsOf } from "./stream/news";

export type Job = components["schemas"]["Job"];
export type Holder = components["schemas"]["JobHolder"];
export type Explanation = components["schemas"]["ExplainJobResponse"];
export type Remedy = components["schemas"]["QueueRemedy"];
export type WaitClass = NonNullable<Job["waitClass"]>;

/** Jobs that are asked for at once. */
export const JOBS = 500;

/** Whether the jobs of its pool come one after the other, by priority; else they share the slots by weight, and nobody
 * is ahead of anybody. */
export function isInTurns(job: Job): boolean {
  return job.summary.jobsAhead >= 0;
}

export function queueQuery(pool: string) {
  return query({
    queryKey: ["queue", pool],
    queryFn: async ({ signal }) => {
      const asked = { resourcePool: pool, limit: JOBS };
      const reply = await answered(api.GET("/api/v1/job-queues-v2", { params: { query: asked }, signal }));
      return {
        jobs: reply.jobs.map((job) => job.full),
        total: reply.pagination.total ?? 0,
        holders: reply.holders ?? [],
        holding: reply.holding ?? 0,
      };
    },
    topics: [`job-queues/${pool}`],
    news: (change) => newsOf(["job_queue"], change, pool),
  });
}

/** Why a job waits, tried by the scheduler when it is asked: nothing keeps it up to date. */
export function explanationQuery(job: string) {
  return {
    queryKey: ["explanation", job],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      answered(api.GET("/api/v1/job-queues/{jobId}/explanation", { params: { path: { jobId: job } }, signal })),
    gcTime: 0,
  };
}
