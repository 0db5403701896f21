/** Pools and machines: what is wrong first, what each pool has, what each slot does, and who has them. */

import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { openSlots, useAgentCommands } from "../actions/agents";
import { Holders } from "../cluster/Holders";
import { Legend, Matrix } from "../cluster/Matrix";
import { PoolFacts, Pools } from "../cluster/Pools";
import { Problems } from "../cluster/Problems";
import { troubled } from "../cluster/standing";
import { TROUBLES } from "../cluster/troubles";
import { count } from "../format";
import { type Agent, agentsQuery, type Pool, poolsQuery, type Slot } from "../services/cluster";
import { useLive } from "../services/live";
import { masterQuery, meQuery } from "../services/session";
import { Empty, Loading, Problem } from "../ui/notices";
import { Page, Section } from "../ui/Page";
import { SearchField } from "../ui/SearchField";

const route = getRouteApi("/shell/cluster");

export function ClusterPage() {
  const { pool } = route.useSearch();
  const me = useSuspenseQuery(meQuery).data;
  const pools = useLive(poolsQuery);
  const agents = useLive(agentsQuery);
  useAgentCommands(agents.data ?? []);
  const error = pools.data && agents.data ? null : (pools.error ?? agents.error);
  return (
    <Page
      title={pool ? <Title pool={pool} /> : "Cluster"}
      name={pool ? `Pool ${pool}` : "Cluster"}
      aside={
        <>
          <Link to="/usage" search={{ by: "pool" }} className="inline-flex min-h-6 items-center underline">
            Usage
          </Link>
          {me.admin && (
            <Link to="/master/logs" className="inline-flex min-h-6 items-center underline">
              Master's log
            </Link>
          )}
        </>
      }
    >
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
        <Cluster pools={pools.data} agents={agents.data} />
      )}
    </Page>
  );
}

function Title({ pool }: { pool: string }) {
  return (
    <>
      <Link to="/cluster" search={{}} className="underline decoration-line hover:decoration-current">
        Cluster
      </Link>
      {` / pool ${pool}`}
    </>
  );
}

function Cluster({ pools, agents }: { pools: Pool[]; agents: Agent[] }) {
  const search = route.useSearch();
  const version = useSuspenseQuery(masterQuery).data.tenaxVersion;
  const known = useMemo(() => ({ version, pools: pools.map((each) => each.name) }), [version, pools]);
  const here = useMemo(
    () => (search.pool ? agents.filter((agent) => agent.resourcePools.includes(search.pool ?? "")) : agents),
    [agents, search.pool],
  );
  const chosen = pools.find((each) => each.name === search.pool);
  if (search.pool && !chosen && here.length === 0) {
    return <Empty title={`There is no pool ${search.pool}`}>The master's settings name the pools.</Empty>;
  }
  return (
    <>
      {here.length > 0 && <Problems agents={here} known={known} search={search} />}
      <Section title={chosen ? "Pool" : "Pools"}>
        <Pools pools={chosen ? [chosen] : pools} />
        {chosen && <PoolFacts pool={chosen} />}
      </Section>
      <Agents agents={here} known={known} />
      {here.length > 0 && (
        <Section title="Who is using slots">
          <Holders agents={here} />
        </Section>
      )}
    </>
  );
}

/** Whether it has that in its name, or in a label as `zone=a`. */
function isCalled(agent: Agent, text: string): boolean {
  const labels = Object.entries(agent.labels).map(([key, value]) => `${key}=${value}`);
  return [agent.id, ...labels].some((each) => each.toLowerCase().includes(text));
}

function Agents({ agents, known }: { agents: Agent[]; known: { version: string; pools: string[] } }) {
  const { q = "", show, pool } = route.useSearch();
  const navigate = useNavigate();
  const shown = useMemo(() => {
    const narrowed = show && TROUBLES.includes(show) ? troubled(show, agents, known) : agents;
    return q ? narrowed.filter((agent) => isCalled(agent, q.toLowerCase())) : narrowed;
  }, [agents, known, show, q]);
  const open = useCallback(
    (agent: Agent, slot?: Slot) => {
      const { experimentId, trialId, taskId } = slot?.container ?? {};
      if (experimentId && trialId) void navigate({ to: "/trials/$trialId", params: { trialId } });
      else if (taskId) void navigate({ to: "/tasks/$taskId", params: { taskId }, search: {} });
      else openSlots(agent.id);
    },
    [navigate],
  );
  if (agents.length === 0) {
    return (
      <Section title="Agents">
        <Empty title="No agent has joined" command="tenax agent join-token create">
          This creates a join token and says how to use it on a machine:
        </Empty>
      </Section>
    );
  }
  const narrowed = shown.length < agents.length;
  return (
    <section aria-label="Agents" className="flex min-w-0 flex-col gap-2">
      <div className="flex flex-wrap items-center gap-3">
        <h2 className="font-semibold">Agents</h2>
        <SearchField
          label="Name or label of an agent"
          value={q}
          onChange={(to) =>
            void navigate({ to: "/cluster", search: { pool, show, q: to || undefined }, replace: true })
          }
        />
        <span role="status" aria-label="Agents shown" className="text-dim">
          {narrowed ? `${count(shown.length)} of ${count(agents.length)}` : count(agents.length)}
        </span>
        {narrowed && (
          <Link to="/cluster" search={{ pool }} className="inline-flex min-h-6 items-center underline">
            Show all
          </Link>
        )}
        <Legend />
      </div>
      {shown.length === 0 ? (
        <Empty title="No matching agents" />
      ) : (
        <Matrix key={`${pool} ${show} ${q}`} agents={shown} open={open} />
      )}
    </section>
  );
}
