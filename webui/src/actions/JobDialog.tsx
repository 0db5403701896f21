/** Priority, weight, place and pool of a job: what the scheduler of its pool goes by. */

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { changeJob, type JobChange } from "../services/actions";
import type { Pool } from "../services/cluster";
import { isInTurns, type Job } from "../services/queue";
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
  const former = { priority: String(job.priority), weight: String(job.weight), pool: job.resourcePool, place: "" };
  const [texts, setTexts] = useState<Texts>(former);
  const set = (name: keyof Texts) => (event: { target: { value: string } }) =>
    setTexts({ ...texts, [name]: event.target.value });
  const shares = !isInTurns(job);
  const submit = async () => {
    const change = changeOf(job, texts);
    if (change) {
      await changeJob(change);
      say({ text: `Changed the place of ${calledSo(job)}` });
      void refresh(client);
    }
    onClose();
  };
  return (
    <FormDialog title={`Place of ${calledSo(job)} in the queue`} yes="Save" onClose={onClose} onSubmit={submit}>
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
        <Field label="Weight" hint="Its share beside the other jobs of the pool.">
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
        <Field label="Pool" hint="What runs saves a checkpoint, leaves, and waits in the other pool.">
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

function Places(props: {
  job: Job;
  jobs: Job[];
  value: string;
  onChange: (event: { target: { value: string } }) => void;
}) {
  const others = props.jobs.filter((other) => other.jobId !== props.job.jobId);
  if (others.length === 0) return null;
  return (
    <Field label="Turn" hint="Beside another job, it has the priority of that one.">
      {(ids) => (
        <select {...ids} className={FIELD} value={props.value} onChange={props.onChange}>
          <option value="">As it is</option>
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
