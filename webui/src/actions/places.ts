/** What a move to the next place of the queue is for the master, and what takes it back. Pure. */

import type { JobChange } from "../services/actions";
import type { Job } from "../services/queue";

/** Beside which job it is put, and how it is put back; undefined: there is nobody on that side. */
export function moveOf(jobs: readonly Job[], jobId: string, way: "sooner" | "later") {
  const at = jobs.findIndex((job) => job.jobId === jobId);
  const job = jobs[at];
  const other = jobs[way === "sooner" ? at - 1 : at + 1];
  if (!job || !other) return undefined;
  const change: JobChange = way === "sooner" ? { jobId, aheadOf: other.jobId } : { jobId, behindOf: other.jobId };
  return { job, other, change, back: backOf(jobs, at, job) };
}

/** Back to where it is: beside a neighbour of the same priority, or by that priority alone. */
function backOf(jobs: readonly Job[], at: number, job: Job): JobChange {
  const { jobId, priority } = job;
  const before = jobs[at - 1];
  const after = jobs[at + 1];
  if (before?.priority === priority) return { jobId, behindOf: before.jobId };
  if (after?.priority === priority) return { jobId, aheadOf: after.jobId };
  return { jobId, priority };
}
