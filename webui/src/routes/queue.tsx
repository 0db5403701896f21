/** The queue of a pool: in the order of turns, and why each waits. */

import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { JobActions, useJobCommands } from "../actions/jobs";
import { count } from "../format";
import { type Pool, poolsQuery } from "../services/cluster";
import { useLive } from "../services/live";
import { JOBS, type Job, queueQuery } from "../services/queue";
import { FIELD } from "../ui/Button";
import { Empty, Loading, Problem } from "../ui/notices";
import { Page } from "../ui/Page";
import { Table } from "../ui/Table";
import { Moment } from "../ui/values";
import { submitCommand } from "./home";

const route = getRouteApi("/shell/queue");

export function QueuePage() {
  const { pool } = route.useSearch();
  const pools = useLive(poolsQuery);
  if (!pools.data) {
    return (
      <Page title="Queue" name="Queue">
        {pools.error ? <Problem error={pools.error} retry={() => void pools.refetch()} /> : <Loading what="pools" />}
      </Page>
    );
  }
  const chosen = pool ?? pools.data.find((each) => each.defaultComputePool)?.name ?? pools.data[0]?.name ?? "";
  return <Queue pools={pools.data} chosen={chosen} />;
}

function Queue({ pools, chosen }: { pools: Pool[]; chosen: string }) {
  const navigate = useNavigate();
  const queue = useLive(queueQuery(chosen));
  const pool = pools.find((each) => each.name === chosen);
  const jobs = queue.data?.jobs ?? [];
  useJobCommands(jobs, pools);
  const columns = useMemo(
    () => [
      ...COLUMNS,
      {
        id: "actions",
        title: "Actions",
        cell: ({ job }: Row) => <JobActions job={job} jobs={jobs} pools={pools} />,
      },
    ],
    [jobs, pools],
  );
  return (
    <Page
      title="Queue"
      name={`Queue of ${chosen}`}
      aside={
        <>
          <select
            aria-label="Pool"
            className={FIELD}
            value={chosen}
            onChange={(event) => void navigate({ to: "/queue", search: { pool: event.target.value } })}
          >
            {!pool && <option value={chosen}>{chosen}</option>}
            {pools.map((each) => (
              <option key={each.name}>{each.name}</option>
            ))}
          </select>
          {pool && (
            <p className="text-dim">
              {count(pool.slotsUsed)} of {count(pool.slotsAvailable)} slots in use,{" "}
              {count(pool.stats.scheduledCount ?? 0)} running, {count(pool.stats.queuedCount ?? 0)} waiting
            </p>
          )}
        </>
      }
    >
      {queue.error && !queue.data ? (
        <Problem error={queue.error} retry={() => void queue.refetch()} />
      ) : !queue.data ? (
        <Loading what="the queue" />
      ) : queue.data.jobs.length === 0 ? (
        <Empty title={`Nothing runs or waits in ${chosen}`} command={submitCommand()}>
          Where a configuration and its code are, this submits them to this cluster:
        </Empty>
      ) : (
        <>
          <Table
            label={`Queue of ${chosen}`}
            columns={columns}
            rows={queue.data.jobs.map((job, place) => ({ job, place: place + 1 }))}
            keyOf={(row) => row.job.jobId}
          />
          {queue.data.total > JOBS && (
            <p className="text-dim">
              Shown are the first {count(JOBS)} of {count(queue.data.total)}.
            </p>
          )}
        </>
      )}
    </Page>
  );
}

function Standing({ job }: { job: Job }) {
  const waits = job.summary.state === "STATE_QUEUED";
  return (
    <span className={`whitespace-nowrap ${waits ? "text-wait" : "text-run"}`}>
      <span aria-hidden="true">{waits ? "◷ " : "▶ "}</span>
      {waits ? "Queued" : "Running"}
    </span>
  );
}

function What({ job }: { job: Job }) {
  const name = job.name || job.entityId;
  if (job.type !== "TYPE_EXPERIMENT") return name;
  return (
    <Link
      to="/experiments/$experimentId"
      params={{ experimentId: Number(job.entityId) }}
      className="hover:underline"
      title={name}
    >
      <span className="text-dim">{job.entityId}</span> {name}
    </Link>
  );
}

interface Row {
  job: Job;
  place: number;
}

const COLUMNS = [
  { id: "place", title: "Turn", align: "right" as const, cell: ({ place }: Row) => place },
  { id: "what", title: "Job", wide: true, cell: ({ job }: Row) => <What job={job} /> },
  { id: "state", title: "State", cell: ({ job }: Row) => <Standing job={job} /> },
  {
    id: "slots",
    title: "Slots",
    align: "right" as const,
    cell: ({ job }: Row) => `${job.allocatedSlots} / ${job.requestedSlots}`,
  },
  { id: "priority", title: "Priority", align: "right" as const, cell: ({ job }: Row) => job.priority },
  { id: "owner", title: "Owner", cell: ({ job }: Row) => job.username },
  { id: "since", title: "Submitted", cell: ({ job }: Row) => <Moment at={job.submissionTime} /> },
  {
    id: "why",
    title: "Why it waits",
    wide: true,
    cell: ({ job }: Row) => <span title={job.reason ?? ""}>{job.reason || "–"}</span>,
  },
];
