/** Pools and machines: what each has, and what its slots do. */

import { Link } from "@tanstack/react-router";
import { AgentActions, useAgentCommands } from "../actions/agents";
import { count } from "../format";
import { type Agent, agentsQuery, type Pool, poolsQuery, type Slot } from "../services/cluster";
import { useLive } from "../services/live";
import { Empty, Loading, Problem } from "../ui/notices";
import { Page, Section } from "../ui/Page";
import { Table } from "../ui/Table";
import { Moment } from "../ui/values";

export function ClusterPage() {
  const pools = useLive(poolsQuery);
  const agents = useLive(agentsQuery);
  useAgentCommands(agents.data ?? []);
  const error = pools.data && agents.data ? null : (pools.error ?? agents.error);
  return (
    <Page title="Cluster" name="Cluster">
      {error ? (
        <Problem
          error={error}
          retry={() => {
            void pools.refetch();
            void agents.refetch();
          }}
        />
      ) : !pools.data || !agents.data ? (
        <Loading what="the cluster" />
      ) : (
        <>
          <Section title="Pools">
            <Table label="Pools" columns={POOLS} rows={pools.data} keyOf={(pool) => pool.name} />
          </Section>
          <Section title="Machines" aside={<Legend />}>
            {agents.data.length === 0 ? (
              <Empty title="No machine has joined" command="tenax agent join-token create">
                This makes a join token, and says how to use it on a machine:
              </Empty>
            ) : (
              <Table label="Machines" columns={AGENTS} rows={agents.data} keyOf={(agent) => agent.id} />
            )}
          </Section>
        </>
      )}
    </Page>
  );
}

const POOLS = [
  {
    id: "name",
    title: "Pool",
    wide: true,
    cell: (pool: Pool) => (
      <Link to="/queue" search={{ pool: pool.name }} className="hover:underline">
        {pool.name}
      </Link>
    ),
  },
  { id: "agents", title: "Machines", align: "right" as const, cell: (pool: Pool) => count(pool.numAgents) },
  { id: "slots", title: "Slots", align: "right" as const, cell: (pool: Pool) => count(pool.slotsAvailable) },
  { id: "used", title: "In use", align: "right" as const, cell: (pool: Pool) => count(pool.slotsUsed) },
  {
    id: "free",
    title: "Free",
    align: "right" as const,
    cell: (pool: Pool) => count(Math.max(0, pool.slotsAvailable - pool.slotsUsed)),
  },
  {
    id: "running",
    title: "Running",
    align: "right" as const,
    cell: (pool: Pool) => count(pool.stats.scheduledCount ?? 0),
  },
  {
    id: "queued",
    title: "Waiting",
    align: "right" as const,
    cell: (pool: Pool) => count(pool.stats.queuedCount ?? 0),
  },
];

function standing(agent: Agent): { word: string; shape: string; tone: string } {
  if (agent.connected === false) return { word: "Away", shape: "✕", tone: "text-bad" };
  if (agent.draining) return { word: "Draining", shape: "◌", tone: "text-wait" };
  if (!agent.enabled) return { word: "Disabled", shape: "⊘", tone: "text-off" };
  return { word: "Ready", shape: "✓", tone: "text-ok" };
}

const AGENTS = [
  { id: "id", title: "Machine", wide: true, cell: (agent: Agent) => <span title={agent.id}>{agent.id}</span> },
  {
    id: "state",
    title: "State",
    cell: (agent: Agent) => {
      const { word, shape, tone } = standing(agent);
      return (
        <span className={tone}>
          <span aria-hidden="true">{shape} </span>
          {word}
        </span>
      );
    },
  },
  { id: "pools", title: "Pool", cell: (agent: Agent) => agent.resourcePools.join(", ") },
  {
    id: "slots",
    title: "Slots",
    wide: true,
    cell: (agent: Agent) => <Slots slots={Object.values(agent.slots ?? {})} />,
  },
  { id: "kind", title: "Kind", cell: (agent: Agent) => kinds(Object.values(agent.slots ?? {})) },
  {
    id: "seen",
    title: "Last seen",
    cell: (agent: Agent) => (agent.connected ? "now" : <Moment at={agent.lastSeenTime} />),
  },
  { id: "actions", title: "Actions", cell: (agent: Agent) => <AgentActions agent={agent} /> },
];

function kinds(slots: Slot[]): string {
  const names = slots.map((slot) => slot.device.brand || slot.device.type.replace("TYPE_", "").toLowerCase());
  return [...new Set(names)].join(", ") || "–";
}

function use(slot: Slot): "used" | "off" | "free" {
  return slot.container ? "used" : slot.enabled ? "free" : "off";
}

const SQUARES = {
  used: "border-run bg-run",
  free: "border-dim",
  off: "border-line bg-line",
};

/** A square per slot, and the same in words. */
function Slots({ slots }: { slots: Slot[] }) {
  const used = slots.filter((slot) => use(slot) === "used").length;
  const off = slots.filter((slot) => use(slot) === "off").length;
  return (
    <span className="flex flex-wrap items-center gap-1">
      <span aria-hidden="true" className="flex flex-wrap gap-0.5">
        {slots.slice(0, 64).map((slot) => (
          <span key={slot.id} className={`size-3 rounded-[2px] border ${SQUARES[use(slot)]}`} />
        ))}
      </span>
      <span className="text-dim">
        {used} of {slots.length} in use{off > 0 ? `, ${off} off` : ""}
      </span>
    </span>
  );
}

function Legend() {
  return (
    <p aria-hidden="true" className="flex items-center gap-3 text-dim text-sm">
      {(["used", "free", "off"] as const).map((kind) => (
        <span key={kind} className="inline-flex items-center gap-1">
          <span className={`size-3 rounded-[2px] border ${SQUARES[kind]}`} />
          {kind === "used" ? "in use" : kind}
        </span>
      ))}
    </p>
  );
}
