/** Priority, weight, place and pool of a job: what the scheduler of its pool goes by. */

import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEdit } from "../editing/useEdit";
import { changeJob, type JobChange } from "../services/actions";
import type { Pool } from "../services/cluster";
import { isInTurns, type Job, queueQuery } from "../services/queue";
import { FIELD } from "../ui/Button";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";
import { say } from "../ui/overlays";
import { calledSo } from "./jobs";
import { refresh } from "./perform";

interface Texts {
  priority: string;
  weight: string;
  pool: string;
  /** `ahead JOB`, `behind JOB`, or nothing. */
  place: string;
}

const LABELS: Record<keyof Texts, string> = { priority: "Priority", weight: "Weight", pool: "Pool", place: "Turn" };

function textsOf(job: Job): Texts {
  return { priority: String(job.priority), weight: String(job.weight), pool: job.resourcePool, place: "" };
}

/** As the queue shows it. What comes beside another job has the priority of that one. */
function shownOf(job: Job, changed: (keyof Texts)[]): Record<string, unknown> {
  return {
    ...(changed.some((name) => name === "priority" || name === "place") && { priority: job.priority }),
    ...(changed.includes("weight") && { weight: job.weight }),
    ...(changed.includes("pool") && { resourcePool: job.resourcePool }),
  };
}

/** What of a job was changed, as the master takes it; undefined: nothing. */
export function changeOf(job: Job, texts: Texts): JobChange | undefined {
  const change: JobChange = { jobId: job.jobId };
  if (texts.priority !== String(job.priority)) change.priority = Number(texts.priority);
  if (texts.weight !== String(job.weight)) change.weight = Number(texts.weight);
  if (texts.pool !== job.resourcePool) change.resourcePool = texts.pool;
  const [where, other] = texts.place.split(" ");
  if (where === "ahead") change.aheadOf = other;
  if (where === "behind") change.behindOf = other;
  return Object.keys(change).length > 1 ? change : undefined;
}

export default function JobDialog(props: { job: Job; jobs: Job[]; pools: Pool[]; onClose: () => void }) {
  const { job, jobs, pools, onClose } = props;
  const client = useQueryClient();
  const edit = useEdit({ of: job, valuesOf: textsOf, read: () => present(client, job, pools), labels: LABELS });
  const texts = edit.values;
  const set = (name: keyof Texts) => (event: { target: { value: string } }) => edit.set({ [name]: event.target.value });
  const shares = !isInTurns(job);
  const submit = async () => {
    await edit.save(async ({ of, values, changed }) => {
      const change = changeOf(of, values);
      if (!change) return;
      await changeJob({ ...change, expected: shownOf(of, changed) });
      say({ text: `Changed the place of ${calledSo(job)}` });
      void refresh(client);
    });
    onClose();
  };
  return (
    <FormDialog title={`Place of ${calledSo(job)} in the queue`} yes="Save" onClose={onClose} onSubmit={submit}>
      {edit.overtaken}
      {!shares && (
        <>
          <Field label="Priority" hint="1 is the most urgent, 99 the least.">
            {(ids) => (
              <input
                {...ids}
                type="number"
                required
                min={1}
                max={99}
                className={FIELD}
                value={texts.priority}
                onChange={set("priority")}
              />
            )}
          </Field>
          {texts.pool === job.resourcePool && (
            <Places job={job} jobs={jobs} value={texts.place} onChange={set("place")} />
          )}
        </>
      )}
      {shares && (
        <Field label="Weight" hint="Its share relative to the other jobs of the pool.">
          {(ids) => (
            <input
              {...ids}
              type="number"
              required
              min={0}
              step="any"
              className={FIELD}
              value={texts.weight}
              onChange={set("weight")}
            />
          )}
        </Field>
      )}
      {pools.length > 1 && (
        <Field label="Pool" hint="What is running saves a checkpoint, stops, and waits in the other pool.">
          {(ids) => (
            <select {...ids} className={FIELD} value={texts.pool} onChange={set("pool")}>
              {pools.map((pool) => (
                <option key={pool.name}>{pool.name}</option>
              ))}
            </select>
          )}
        </Field>
      )}
    </FormDialog>
  );
}

/** It may wait in another pool by now. */
async function present(client: QueryClient, job: Job, pools: Pool[]): Promise<Job> {
  for (const pool of [job.resourcePool, ...pools.map(({ name }) => name)]) {
    const { jobs } = await client.fetchQuery({ ...queueQuery(pool), staleTime: 0 });
    const there = jobs.find((each) => each.jobId === job.jobId);
    if (there) return there;
  }
  throw new Error(`${calledSo(job)} is no longer in a queue.`);
}

function Places(props: {
  job: Job;
  jobs: Job[];
  value: string;
  onChange: (event: { target: { value: string } }) => void;
}) {
  const others = props.jobs.filter((other) => other.jobId !== props.job.jobId);
  if (others.length === 0) return null;
  return (
    <Field label="Turn" hint="Next to another job, it takes that job's priority.">
      {(ids) => (
        <select {...ids} className={FIELD} value={props.value} onChange={props.onChange}>
          <option value="">Unchanged</option>
          {(["ahead", "behind"] as const).map((where) => (
            <optgroup key={where} label={where === "ahead" ? "Just ahead of" : "Just behind"}>
              {others.map((other) => (
                <option key={other.jobId} value={`${where} ${other.jobId}`}>
                  {where === "ahead" ? "ahead of" : "behind"} {calledSo(other)} (priority {other.priority})
                </option>
              ))}
            </optgroup>
          ))}
        </select>
      )}
    </Field>
  );
}
