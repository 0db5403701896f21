/** What needs me: what of mine runs, what failed and why, what waits and why, and what is free. */

import { useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { poolsQuery } from "../services/cluster";
import { type Experiment, type ExperimentSearch, experimentsQuery } from "../services/experiments";
import { useLive } from "../services/live";
import { meQuery } from "../services/session";
import { STATE_FILTERS } from "../services/states";
import { Empty, Loading, Problem } from "../ui/notices";
import { Page, Section } from "../ui/Page";
import { StateMark } from "../ui/State";
import { Moment, Progress, Value } from "../ui/values";

const SHOWN = 6;

/** The command that makes the first experiment, at this cluster. */
export function submitCommand(): string {
  return `tenax -m ${window.location.origin} experiment create config.yaml .`;
}

export function Home() {
  const me = useSuspenseQuery(meQuery).data;
  const mine = (filter: string, sort: string): ExperimentSearch => ({
    userId: me.id,
    states: STATE_FILTERS[filter]?.states,
    sort,
  });
  return (
    <Page title="Home" name="Home">
      <div className="grid gap-4 lg:grid-cols-2">
        <Mine title="Running" filter="running" search={mine("running", "-startTime")} nothing="Nothing of yours runs.">
          {(experiment) => (
            <>
              <span className="min-w-0 truncate text-dim">
                {experiment.searcherMetric} <Value value={experiment.bestTrialSearcherMetric} />
              </span>
              <Progress share={experiment.progress ?? 0} label={`Progress of experiment ${experiment.id}`} />
            </>
          )}
        </Mine>
        <Mine title="Waiting" filter="queued" search={mine("queued", "startTime")} nothing="Nothing of yours waits.">
          {(experiment) => <Reason experiment={experiment} />}
        </Mine>
        <Mine title="Failed" filter="error" search={mine("error", "-endTime")} nothing="Nothing of yours has failed.">
          {(experiment) => (
            <>
              <Reason experiment={experiment} />
              <span className="text-dim">
                <Moment at={experiment.endTime} />
              </span>
            </>
          )}
        </Mine>
        <Pools />
      </div>
      <First userId={me.id ?? 0} />
    </Page>
  );
}

function Reason({ experiment }: { experiment: Experiment }) {
  return (
    <span className="min-w-0 truncate text-dim" title={experiment.reason}>
      {experiment.reason || "no reason was given"}
    </span>
  );
}

function Mine(props: {
  title: string;
  filter: string;
  search: ExperimentSearch;
  nothing: string;
  children: (experiment: Experiment) => ReactNode;
}) {
  const found = useLive(experimentsQuery(props.search, 0, SHOWN));
  const more = (found.data?.total ?? 0) - SHOWN;
  return (
    <Section title={props.title}>
      {found.error && !found.data ? (
        <Problem error={found.error} retry={() => void found.refetch()} />
      ) : !found.data ? (
        <Loading what="experiments" />
      ) : found.data.rows.length === 0 ? (
        <p className="rounded-md border border-line border-dashed p-3 text-dim">{props.nothing}</p>
      ) : (
        <ul className="overflow-hidden rounded-md border border-line">
          {found.data.rows.map((experiment) => (
            <li
              key={experiment.id}
              className="grid min-h-8 grid-cols-[minmax(0,1fr)_auto] items-center gap-x-3 border-line border-b px-3 py-1 sm:grid-cols-[minmax(0,1.2fr)_auto_minmax(0,1.6fr)_auto] sm:py-0 last:border-b-0"
            >
              <Link
                to="/experiments/$experimentId"
                params={{ experimentId: experiment.id }}
                className="min-w-0 truncate hover:underline"
                title={experiment.name}
              >
                <span className="text-dim">{experiment.id}</span> {experiment.name}
              </Link>
              <StateMark state={experiment.state} />
              {props.children(experiment)}
            </li>
          ))}
        </ul>
      )}
      {more > 0 && (
        <Link
          to="/experiments"
          search={{ state: props.filter, owner: "me" }}
          className="self-start text-accent underline"
        >
          All {found.data?.total} of them
        </Link>
      )}
    </Section>
  );
}

function Pools() {
  const pools = useLive(poolsQuery);
  return (
    <Section title="Free now">
      {pools.error && !pools.data ? (
        <Problem error={pools.error} retry={() => void pools.refetch()} />
      ) : !pools.data ? (
        <Loading what="pools" />
      ) : (
        <ul className="overflow-hidden rounded-md border border-line">
          {pools.data.map((pool) => (
            <li
              key={pool.name}
              className="flex min-h-8 items-center justify-between gap-3 border-line border-b px-3 last:border-b-0"
            >
              <Link to="/queue" search={{ pool: pool.name }} className="min-w-0 truncate hover:underline">
                {pool.name}
              </Link>
              <span>
                {pool.numAgents === 0
                  ? "no agents"
                  : `${Math.max(0, pool.slotsAvailable - pool.slotsUsed)} of ${pool.slotsAvailable} slots free`}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

function First({ userId }: { userId: number }) {
  const any = useLive(experimentsQuery({ userId, sort: "-id", archived: true }, 0, 1));
  if (!any.data || any.data.total > 0) return null;
  return (
    <Empty title="You have no experiments yet" command={submitCommand()}>
      Where a configuration and its code are, this submits them to this cluster:
    </Empty>
  );
}
