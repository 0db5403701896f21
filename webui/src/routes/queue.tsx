/** The queue of a pool: in the order of turns, why each waits, and what would help. */

import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useMemo } from "react";
import { JobActions, useJobCommands } from "../actions/jobs";
import { count, number } from "../format";
import { useCommands } from "../keys/commands";
import { Why } from "../queue/Why";
import { type Pool, poolsQuery } from "../services/cluster";
import { submitCommand } from "../services/experiments";
import { useLive } from "../services/live";
import { type Holder, isInTurns, JOBS, type Job, queueQuery } from "../services/queue";
import { meQuery } from "../services/session";
import { Empty, Loading, Problem } from "../ui/notices";
import { Page } from "../ui/Page";
import { Table } from "../ui/Table";
import { Moment } from "../ui/values";
import { visible } from "../visible";

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
  const { job: current } = route.useSearch();
  const me = useSuspenseQuery(meQuery).data;
  const queue = useLive(queueQuery(chosen));
  const jobs = queue.data?.jobs ?? [];
  useJobCommands(jobs, pools, current);
  useSteps(jobs, chosen, current);
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
  const rows = (queue.data?.jobs ?? []).map((job, place) => ({
    job,
    place: place + 1,
    mine: job.userId === me.id,
    holders: queue.data?.holders ?? [],
    holding: queue.data?.holding ?? 0,
  }));
  return (
    <Page title="Queue" name={`Queue of ${chosen}`}>
      <Pools pools={pools} chosen={chosen} />
      {queue.error && !queue.data ? (
        <Problem error={queue.error} retry={() => void queue.refetch()} />
      ) : !queue.data ? (
        <Loading what="the queue" />
      ) : queue.data.jobs.length === 0 ? (
        <Empty title={`Nothing is running or waiting in ${chosen}`} command={submitCommand()}>
          Run this where a configuration and its code are, to submit them to this cluster:
        </Empty>
      ) : (
        <>
          <Table
            label={`Queue of ${chosen}`}
            columns={columns}
            rows={rows}
            keyOf={(row) => row.job.jobId}
            current={current}
          />
          {queue.data.total > JOBS && (
            <p className="text-dim">
              Showing the first {count(JOBS)} of {count(queue.data.total)}.
            </p>
          )}
        </>
      )}
    </Page>
  );
}

/** Keys choose the job that other keys act on; which one stands in the address. */
function useSteps(jobs: Job[], pool: string, current?: string): void {
  const navigate = useNavigate();
  const at = jobs.findIndex((job) => job.jobId === current);
  const step = (to: number) => () => {
    const job = jobs[Math.max(0, Math.min(jobs.length - 1, to))];
    if (job) void navigate({ to: "/queue", search: { pool, job: job.jobId }, replace: true });
  };
  useCommands([
    { name: "rowDown", silent: true, run: step(at + 1) },
    { name: "rowUp", silent: true, run: step(at < 0 ? 0 : at - 1) },
  ]);
  useEffect(() => {
    if (at >= 0) document.querySelector("tr[aria-current]")?.scrollIntoView({ block: "nearest" });
  }, [at]);
}

/** What each pool has, and how much waits there; a click shows its queue. */
function Pools({ pools, chosen }: { pools: Pool[]; chosen: string }) {
  return (
    <ul aria-label="Pools" className="flex flex-wrap gap-2">
      {pools.map((pool) => {
        const here = pool.name === chosen;
        const free = Math.max(0, pool.slotsAvailable - pool.slotsUsed);
        return (
          <li key={pool.name} className="min-w-0 max-w-full">
            <Link
              to="/queue"
              search={{ pool: pool.name }}
              activeOptions={{ exact: true, includeSearch: true, explicitUndefined: true }}
              aria-current={here ? "page" : undefined}
              className={`flex flex-col rounded-md border px-3 py-1.5 hover:bg-hover ${here ? "border-accent" : "border-line"}`}
            >
              <span className="truncate font-medium" title={pool.name}>
                {pool.name}
              </span>
              <span className="text-dim">
                {count(pool.stats.scheduledCount ?? 0)} running, {count(pool.stats.queuedCount ?? 0)} queued,{" "}
                {count(free)} of {count(pool.slotsTotal ?? pool.slotsAvailable)} slots free
              </span>
            </Link>
          </li>
        );
      })}
    </ul>
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
  const name = visible(job.name || job.entityId);
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
  mine: boolean;
  holders: Holder[];
  holding: number;
}

/** What it waits for, else what it holds of what it asks for. */
function needs(job: Job): string {
  const { waitingSlots, allocatedSlots, requestedSlots } = job;
  if (waitingSlots === null || waitingSlots === undefined) return `${allocatedSlots} / ${requestedSlots}`;
  return allocatedSlots > 0 || requestedSlots > waitingSlots
    ? `${waitingSlots} (${allocatedSlots} / ${requestedSlots})`
    : String(waitingSlots);
}

const COLUMNS = [
  { id: "place", title: "Turn", align: "right" as const, cell: ({ place }: Row) => place },
  { id: "what", title: "Job", wide: true, cell: ({ job }: Row) => <What job={job} /> },
  { id: "state", title: "State", cell: ({ job }: Row) => <Standing job={job} /> },
  { id: "needs", title: "Needs", align: "right" as const, cell: ({ job }: Row) => <Needs job={job} /> },
  {
    id: "priority",
    title: "Priority",
    align: "right" as const,
    cell: ({ job }: Row) => (isInTurns(job) ? job.priority : `weight ${number(job.weight)}`),
  },
  { id: "owner", title: "Owner", cell: ({ job, mine }: Row) => <Owner job={job} mine={mine} /> },
  {
    id: "since",
    title: "Waiting since",
    cell: ({ job }: Row) => <Moment at={job.waitingSince ?? undefined} />,
  },
  {
    id: "why",
    title: "Why it waits",
    wraps: true,
    below: ({ job }: Row) => job.summary.state === "STATE_QUEUED" || Boolean(job.reason),
    cell: ({ job, holders, holding }: Row) => <Why job={job} holders={holders} holding={holding} />,
  },
];

function Needs({ job }: { job: Job }) {
  const title = `It holds ${job.allocatedSlots} of the ${job.requestedSlots} slots it asks for`;
  return <span title={title}>{needs(job)}</span>;
}

function Owner({ job, mine }: { job: Job; mine: boolean }) {
  if (!mine) return job.username;
  return (
    <span className="font-semibold text-accent" title={job.username}>
      ● you
    </span>
  );
}
