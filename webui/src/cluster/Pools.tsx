/** What each pool has: all its slots are in use, free or offline. One that is chosen says how it is set. */

import { Link } from "@tanstack/react-router";
import { count } from "../format";
import type { Pool } from "../services/cluster";
import { Facts } from "../ui/Facts";
import { Table } from "../ui/Table";

interface Share {
  used: number;
  free: number;
  offline: number;
  total: number;
}

function shareOf(pool: Pool): Share {
  const total = pool.slotsTotal ?? pool.slotsAvailable;
  return {
    used: pool.slotsUsed,
    free: Math.max(0, pool.slotsAvailable - pool.slotsUsed),
    offline: Math.max(0, total - pool.slotsAvailable),
    total,
  };
}

export function Pools({ pools, chosen }: { pools: Pool[]; chosen?: string }) {
  return <Table label="Pools" columns={COLUMNS} rows={pools} keyOf={(pool) => pool.name} current={chosen} />;
}

const right = "right" as const;
const COLUMNS = [
  {
    id: "name",
    title: "Pool",
    wide: true,
    cell: (pool: Pool) => (
      <Link to="/cluster" search={{ pool: pool.name }} className="hover:underline" title={pool.name}>
        {pool.name}
      </Link>
    ),
  },
  { id: "share", title: "Share", cell: (pool: Pool) => <Bar share={shareOf(pool)} /> },
  { id: "used", title: "In use", align: right, cell: (pool: Pool) => count(shareOf(pool).used) },
  { id: "free", title: "Free", align: right, cell: (pool: Pool) => count(shareOf(pool).free) },
  { id: "offline", title: "Offline", align: right, cell: (pool: Pool) => count(shareOf(pool).offline) },
  { id: "slots", title: "Slots", align: right, cell: (pool: Pool) => count(shareOf(pool).total) },
  { id: "agents", title: "Agents", align: right, cell: (pool: Pool) => count(pool.numAgents) },
  { id: "running", title: "Running", align: right, cell: (pool: Pool) => count(pool.stats.scheduledCount ?? 0) },
  {
    id: "queued",
    title: "Waiting",
    align: right,
    cell: (pool: Pool) => (
      <Link
        to="/queue"
        search={{ pool: pool.name }}
        className="inline-flex min-h-6 min-w-6 items-center justify-end underline"
        aria-label={`${count(pool.stats.queuedCount ?? 0)} waiting in the queue of ${pool.name}`}
      >
        {count(pool.stats.queuedCount ?? 0)}
      </Link>
    ),
  },
];

/** The figures beside it say the same. */
function Bar({ share }: { share: Share }) {
  const width = (slots: number) => ({ width: `${share.total > 0 ? (100 * slots) / share.total : 0}%` });
  return (
    <span aria-hidden="true" className="flex h-2.5 w-32 overflow-hidden rounded-sm border border-line bg-surface">
      <span className="bg-run" style={width(share.used)} />
      <span style={width(share.free)} />
      <span className="bg-off" style={width(share.offline)} />
    </span>
  );
}

const SCHEDULERS: Record<string, string> = {
  priority: "by priority",
  fair_share: "fair share",
  least_attained: "by priority, then by who has used least",
};

export function PoolFacts({ pool }: { pool: Pool }) {
  const priority = pool.details.priorityScheduler;
  const defaults = [pool.defaultComputePool && "for tasks with slots", pool.defaultAuxPool && "for those without"];
  return (
    <>
      {pool.description && <p className="break-words">{pool.description}</p>}
      <Facts
        facts={[
          ["Turns", SCHEDULERS[pool.policy] ?? pool.policy],
          ...(priority
            ? ([
                ["Default priority", count(priority.defaultPriority)],
                ["Preemption", priority.preemption ? "yes" : "no"],
              ] as [string, string][])
            : []),
          [
            "Placed on",
            pool.schedulerFittingPolicy === "FITTING_POLICY_WORST"
              ? "the emptiest agent"
              : "the fullest agent that fits",
          ],
          ["Kind", pool.accelerator || pool.slotType?.replace("TYPE_", "").toLowerCase() || "–"],
          ["Slots per agent", (pool.slotsPerAgent ?? -1) < 0 ? "differ" : count(pool.slotsPerAgent ?? 0)],
          ["Without slots", `${count(pool.auxContainersRunning)} of ${count(pool.auxContainerCapacity)} places in use`],
          ["Default pool", defaults.filter(Boolean).join(", ") || "no"],
          ["Reserved for", pool.bound ? "some workspaces" : "everyone"],
        ]}
      />
    </>
  );
}
