/** Why a job waits: what has to happen, in which class of it, who holds the slots, and what would help. */

import { Link } from "@tanstack/react-router";
import { Fragment } from "react";
import { calledSo } from "../actions/jobs";
import { count } from "../format";
import { type Holder, isInTurns, type Job, type WaitClass } from "../services/queue";
import { visible } from "../visible";
import { WhatIf } from "./WhatIf";

/** Shape, word and colour of each class. */
const CLASSES: Record<WaitClass, { shape: string; word: string; tone: string }> = {
  WAIT: { shape: "◷", word: "Wait", tone: "text-off" },
  CHANGE: { shape: "✕", word: "Change the request", tone: "text-bad" },
  ASK: { shape: "!", word: "Ask someone", tone: "text-wait" },
};

export function Why({ job, holders, holding }: { job: Job; holders: Holder[]; holding: number }) {
  if (job.summary.state !== "STATE_QUEUED" && !job.reason) return <span className="text-dim">–</span>;
  if (!job.reason) return <span className="text-dim">The scheduler will look at it in a moment.</span>;
  const kind = job.waitClass && CLASSES[job.waitClass];
  return (
    <div className="flex flex-col">
      <p>
        {kind && (
          <span className={`font-medium whitespace-nowrap ${kind.tone}`}>
            <span aria-hidden="true" className="inline-block w-3.5 text-center">
              {kind.shape}
            </span>{" "}
            {kind.word}:{" "}
          </span>
        )}
        {job.reason}
      </p>
      <p className="text-dim">
        <Help job={job} holders={holders} holding={holding} />
      </p>
      {job.waitClass === "WAIT" && <WhatIf job={job} />}
    </div>
  );
}

function Help({ job, holders, holding }: { job: Job; holders: Holder[]; holding: number }) {
  if (job.waitClass === "CHANGE") {
    return job.type === "TYPE_EXPERIMENT" ? (
      <>
        It will never start by itself:{" "}
        <Link to="/experiments/new" search={{ fork: Number(job.entityId) }} className="underline">
          fork it with a different request
        </Link>
        <Elsewhere job={job} before=", or move it: " />, and end this one.
      </>
    ) : (
      <>It will never start by itself: end it, and start it again with a different request.</>
    );
  }
  if (job.waitClass === "ASK") {
    return (
      <>
        Agents that take no work are listed under{" "}
        <Link to="/cluster" className="underline">
          Cluster
        </Link>
        <Elsewhere job={job} before="; to start sooner: " />.
      </>
    );
  }
  return (
    <>
      {job.waitingSlots ? <Held holders={holders} holding={holding} /> : null}
      To start sooner: <Elsewhere job={job} after=", or " />
      {sooner(job)}.
    </>
  );
}

function sooner(job: Job): string {
  if (!isInTurns(job)) return "a greater weight";
  return job.priority > 1 ? `a priority below ${job.priority}` : "ask for fewer slots";
}

function Elsewhere({ job, before = "", after = "" }: { job: Job; before?: string; after?: string }) {
  const pools = job.roomIn ?? [];
  if (pools.length === 0) return null;
  return (
    <>
      {before}
      {pools.length === 1 ? "pool " : "the pools "}
      {pools.map((pool, place) => (
        <Fragment key={pool}>
          {place > 0 && ", "}
          <Link to="/queue" search={{ pool }} className="underline">
            {pool}
          </Link>
        </Fragment>
      ))}{" "}
      {pools.length === 1 ? "has" : "have"} room for it now{after}
    </>
  );
}

/** Who holds the slots, by how many. */
function Held({ holders, holding }: { holders: Holder[]; holding: number }) {
  if (holders.length === 0) return null;
  const more = holding - holders.length;
  return (
    <>
      Slots are held by{" "}
      {holders.map((holder, place) => (
        <Fragment key={holder.jobId}>
          {place > 0 && ", "}
          <HeldBy holder={holder} />
        </Fragment>
      ))}
      {more > 0 && ` and ${count(more)} more`}.{" "}
    </>
  );
}

function HeldBy({ holder }: { holder: Holder }) {
  const text = `${calledSo(holder)} of ${holder.username} (${holder.slots})`;
  if (holder.type !== "TYPE_EXPERIMENT") return <>{text}</>;
  return (
    <Link
      to="/experiments/$experimentId"
      params={{ experimentId: Number(holder.entityId) }}
      className="underline"
      title={visible(holder.name)}
    >
      {text}
    </Link>
  );
}
