/** What can be done to a job of the queue, by its owner and administrators. */

import { useSuspenseQuery } from "@tanstack/react-query";
import { lazy } from "react";
import { type Command, useCommands } from "../keys/commands";
import type { Pool } from "../services/cluster";
import type { Job } from "../services/queue";
import { meQuery } from "../services/session";
import { Button } from "../ui/Button";
import { openDialog } from "../ui/overlays";
import { mayChange } from "./states";

const JobDialog = lazy(() => import("./JobDialog"));
/** Jobs that the palette knows of. */
const MAX_LISTED = 50;

function open(job: Job, jobs: Job[], pools: Pool[]): void {
  openDialog((close) => <JobDialog job={job} jobs={jobs} pools={pools} onClose={close} />);
}

export function useJobCommands(jobs: Job[], pools: Pool[]): void {
  const me = useSuspenseQuery(meQuery).data;
  const own = jobs.filter((job) => mayChange(me, job.userId)).slice(0, MAX_LISTED);
  useCommands(
    own.map((job): Command => ({ title: `Change the place of ${calledSo(job)}`, run: () => open(job, jobs, pools) })),
  );
}

/** What a job is called. */
export function calledSo(job: Job): string {
  return job.type === "TYPE_EXPERIMENT" ? `experiment ${job.entityId}` : job.name || job.entityId;
}

export function JobActions({ job, jobs, pools }: { job: Job; jobs: Job[]; pools: Pool[] }) {
  const me = useSuspenseQuery(meQuery).data;
  if (!mayChange(me, job.userId)) return <span className="text-dim">–</span>;
  return (
    <Button aria-label={`Change the place of ${calledSo(job)}`} onClick={() => open(job, jobs, pools)}>
      Change
    </Button>
  );
}
