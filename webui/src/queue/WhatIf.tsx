/** When a job is likely to start and what would help, tried by the scheduler on the queue as it is when it is asked. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type Explanation, explanationQuery, type Job, type Remedy } from "../services/queue";
import { Button } from "../ui/Button";
import { Problem } from "../ui/notices";
import { Until } from "../ui/values";

export function WhatIf({ job }: { job: Job }) {
  const [open, setOpen] = useState(false);
  const explained = useQuery({ ...explanationQuery(job.jobId), enabled: open });
  return (
    <div className="flex flex-col items-start gap-1">
      <Button aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? "Close" : "When will it start, and what would help?"}
      </Button>
      {open && explained.error && <Problem error={explained.error} retry={() => void explained.refetch()} />}
      {open && !explained.error && !explained.data && <p className="text-dim">The scheduler is trying …</p>}
      {open && explained.data && <Answer explained={explained.data} />}
    </div>
  );
}

function Answer({ explained }: { explained: Explanation }) {
  if (explained.waitingSlots === null || explained.waitingSlots === undefined)
    return <p>Nothing of it is waiting now.</p>;
  const at = explained.startsBy ?? explained.likelyStart;
  return (
    <div className="flex flex-col gap-1">
      <p>
        {explained.startsBy
          ? "It will start, at the latest, "
          : at
            ? "It is likely to start "
            : "It is not known when it will start"}
        {at && <Until at={at} />}
        {!explained.startsBy && explained.sureness && `, ${SURENESS[explained.sureness]}`}.
      </p>
      <Remedies title="It would start at once with" remedies={explained.remedies.filter((r) => !r.leaving)} />
      <Remedies
        title="It would start, once what runs has saved and left, with"
        remedies={explained.remedies.filter((r) => r.leaving)}
      />
      {explained.remedies.length === 0 && <p className="text-dim">No change to it alone would start it now.</p>}
    </div>
  );
}

function Remedies({ title, remedies }: { title: string; remedies: Remedy[] }) {
  if (remedies.length === 0) return null;
  return (
    <>
      <p className="text-dim">{title}</p>
      <ul className="list-disc pl-5">
        {remedies.map((remedy) => (
          <li key={remedy.kind}>{WORDS[remedy.kind](remedy.value)}</li>
        ))}
      </ul>
    </>
  );
}

/** What the time of a likely start stands on. */
const SURENESS: Record<NonNullable<Explanation["sureness"]>, string> = {
  LIKELY: "judging by the progress of what is running and by how long runs of the same jobs took",
  GUESS: "which is a guess: by time limits, and by how long runs in this pool usually take",
};

const WORDS: Record<Remedy["kind"], (value: string) => string> = {
  SLOTS: (value) => `${value} ${value === "1" ? "slot" : "slots"} each, if it is created again`,
  TIME_LIMIT: (value) =>
    `a time limit of ${value} for each of its runs (resources.time_limit), in which it has to save`,
  CONSTRAINT: (value) => `no constraint on it of: ${value} (resources.constraints, if it is created again)`,
  MAX_SLOTS: (value) => `at most ${value} slots at a time`,
  PRIORITY: (value) => `priority ${value}`,
  WEIGHT: (value) => `weight ${value}`,
  POOL: (value) => `the pool ${value}`,
};
