/** What can be done to a job of the queue, by its owner and administrators. */

import { type QueryClient, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { type Command, useCommands } from "../keys/commands";
import { lazy } from "../parts";
import { changeJob, type JobChange } from "../services/actions";
import type { Pool } from "../services/cluster";
import type { Job } from "../services/queue";
import { meQuery, type User } from "../services/session";
import { Button } from "../ui/Button";
import { openDialog, say } from "../ui/overlays";
import { outcome, refresh } from "./perform";
import { moveOf } from "./places";
import { mayChange } from "./states";

const JobDialog = lazy(() => import("./JobDialog"));
/** Jobs that the palette knows of. */
const MAX_LISTED = 50;

function open(job: Job, jobs: Job[], pools: Pool[]): void {
  openDialog((close) => <JobDialog job={job} jobs={jobs} pools={pools} onClose={close} />);
}

/** `jobs`: the queue, of which keys act on `current`. */
export function useJobCommands(jobs: Job[], pools: Pool[], current?: string): void {
  const client = useQueryClient();
  const me = useSuspenseQuery(meQuery).data;
  const own = jobs.filter((job) => mayChange(me, job.userId)).slice(0, MAX_LISTED);
  const job = jobs.find((each) => each.jobId === current);
  const move = (way: "sooner" | "later") => () => void moveJob(client, me, jobs, job, way);
  useCommands([
    ...own.map(
      (job): Command => ({ title: `Change the place of ${calledSo(job)}`, run: () => open(job, jobs, pools) }),
    ),
    ...(job
      ? [
          { name: "sooner" as const, title: `Move ${calledSo(job)} ahead of the one before it`, run: move("sooner") },
          { name: "later" as const, title: `Move ${calledSo(job)} behind the next one`, run: move("later") },
        ]
      : []),
  ]);
}

/** One place on, if whoever presses may, and if the pool goes by places. */
async function moveJob(client: QueryClient, me: User, jobs: Job[], job: Job | undefined, way: "sooner" | "later") {
  if (!job) return;
  if (!mayChange(me, job.userId)) {
    say({ text: `${calledSo(job)} is ${job.username}'s: only its owner and administrators can move it` });
    return;
  }
  const move = moveOf(jobs, job.jobId, way);
  if (!move) {
    say({ text: `${calledSo(job)} is already ${way === "sooner" ? "the first" : "the last"}` });
    return;
  }
  const what = `${calledSo(job)} ${way === "sooner" ? "ahead of" : "behind"} ${calledSo(move.other)}`;
  if (await changed(client, move.change, `Move ${what}`)) {
    say({ text: `Moved ${what}`, undo: () => void changed(client, move.back, `Move ${calledSo(job)} back`) });
  }
}

async function changed(client: QueryClient, change: JobChange, what: string): Promise<boolean> {
  const done = await outcome(
    changeJob(change).then(() => true),
    what,
  );
  void refresh(client);
  return done ?? false;
}

/** What a job is called. */
export function calledSo(job: Pick<Job, "type" | "entityId" | "name">): string {
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
