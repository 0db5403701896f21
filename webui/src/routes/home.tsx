/** What needs me: what of mine hangs, failed or waits, and why; what runs or is paused, and how far it is; what is free. */

import { useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { count, duration } from "../format";
import { poolsQuery } from "../services/cluster";
import { type Experiment, type ExperimentSearch, experimentsQuery, submitCommand } from "../services/experiments";
import { useLive } from "../services/live";
import { recentProjectsQuery } from "../services/projects";
import { meQuery } from "../services/session";
import { STATE_FILTERS } from "../services/stateFilters";
import { Empty, Loading, Problem } from "../ui/notices";
import { Page, Section } from "../ui/Page";
import { StateMark } from "../ui/State";
import { Moment, Progress, Value } from "../ui/values";
import { visible } from "../visible";
import { Attention } from "./home/attention";
import { Sparkline } from "./home/sparkline";

const SHOWN = 6;
const ROW =
  "flex min-h-10 flex-wrap items-center justify-between gap-x-3 border-line border-b px-3 py-2 last:border-b-0";

export function Home() {
  const me = useSuspenseQuery(meQuery).data;
  const mine = (filter: string, sort: string): ExperimentSearch => ({
    userId: me.id,
    states: STATE_FILTERS[filter]?.states,
    sort,
  });
  return (
    <Page title="Home" name="Home">
      <First userId={me.id ?? 0} />
      <Attention userId={me.id ?? 0} waiting={mine("queued", "startTime")} failed={mine("error", "-endTime")} />
      <Mine
        title="Running"
        filter="running"
        search={mine("running", "-startTime")}
        nothing="None of your experiments are running."
      >
        {(experiment) => <Going experiment={experiment} />}
      </Mine>
      <Mine title="Paused" filter="paused" search={mine("paused", "-startTime")}>
        {(experiment) => <Held experiment={experiment} />}
      </Mine>
      <div className="grid gap-4 lg:grid-cols-2">
        <Pools />
        <Projects />
      </div>
      <Mine title="Recently completed" filter="completed" search={mine("completed", "-endTime")}>
        {(experiment) => <Over experiment={experiment} />}
      </Mine>
    </Page>
  );
}

/** The curve of its metric, its best value, how far it is and for how long it will go on. */
function Going({ experiment }: { experiment: Experiment }) {
  const share = experiment.progress ?? 0;
  const left = 0 < share && share < 1 ? (experiment.runningSeconds * (1 - share)) / share : undefined;
  return (
    <>
      <Sparkline experiment={experiment} />
      <span className="min-w-0 truncate text-dim">
        {experiment.searcherMetric} <Value value={experiment.bestTrialSearcherMetric} />
      </span>
      <Progress share={share} label={`Progress of experiment ${experiment.id}`} />
      <span
        className={`whitespace-nowrap text-dim lg:text-right ${left === undefined ? "max-lg:hidden" : "max-lg:col-span-2"}`}
        title="At the current pace"
      >
        {left === undefined ? "–" : `${duration(left)} left`}
      </span>
    </>
  );
}

/** The curve of its metric, its best value, how far it came and for how long it ran. */
function Held({ experiment }: { experiment: Experiment }) {
  return (
    <>
      <Sparkline experiment={experiment} />
      <span className="min-w-0 truncate text-dim">
        {experiment.searcherMetric} <Value value={experiment.bestTrialSearcherMetric} />
      </span>
      <Progress share={experiment.progress ?? 0} label={`Progress of experiment ${experiment.id}`} />
      <span className="whitespace-nowrap text-dim lg:text-right">ran for {duration(experiment.runningSeconds)}</span>
    </>
  );
}

/** The curve of its metric, its best value, for how long it ran and when it was over. */
function Over({ experiment }: { experiment: Experiment }) {
  return (
    <>
      <Sparkline experiment={experiment} />
      <span className="min-w-0 truncate text-dim">
        {experiment.searcherMetric} <Value value={experiment.bestTrialSearcherMetric} />
      </span>
      <span className="whitespace-nowrap text-dim">ran for {duration(experiment.runningSeconds)}</span>
      <span className="whitespace-nowrap text-dim lg:text-right">
        <Moment at={experiment.endTime} />
      </span>
    </>
  );
}

/** Without `nothing`, it is there once there is something. */
function Mine(props: {
  title: string;
  filter: string;
  search: ExperimentSearch;
  nothing?: string;
  children: (experiment: Experiment) => ReactNode;
}) {
  const found = useLive(experimentsQuery(props.search, 0, SHOWN));
  const more = (found.data?.total ?? 0) - SHOWN;
  if (props.nothing === undefined && !found.data?.total) return null;
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
              className="grid min-h-10 grid-cols-[minmax(0,1fr)_auto] items-center gap-x-3 gap-y-1 border-line border-b px-3 py-2 last:border-b-0 lg:grid-cols-[minmax(0,1.4fr)_90px_140px_minmax(0,1fr)_120px_110px]"
            >
              <Link
                to="/experiments/$experimentId"
                params={{ experimentId: experiment.id }}
                className="min-w-0 truncate hover:underline"
                title={visible(experiment.name)}
              >
                <span className="text-dim">{experiment.id}</span> {visible(experiment.name)}
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
          Show all {found.data?.total}
        </Link>
      )}
    </Section>
  );
}

/** Those that one has opened last. */
function Projects() {
  const projects = useLive(recentProjectsQuery);
  return (
    <Section title="Recent projects">
      {projects.error && !projects.data ? (
        <Problem error={projects.error} retry={() => void projects.refetch()} />
      ) : !projects.data ? (
        <Loading what="projects" />
      ) : projects.data.length === 0 ? (
        <p className="rounded-md border border-line border-dashed p-3 text-dim">
          Projects that you open appear here.{" "}
          <Link to="/workspaces" className="text-accent underline">
            All projects
          </Link>
        </p>
      ) : (
        <ul className="overflow-hidden rounded-md border border-line">
          {projects.data.slice(0, SHOWN).map((project) => (
            <li key={project.id} className={ROW}>
              <Link
                to="/projects/$projectId"
                params={{ projectId: project.id }}
                className="min-w-0 truncate hover:underline"
                title={visible(`${project.workspaceName} / ${project.name}`)}
              >
                {visible(`${project.workspaceName} / ${project.name}`)}
              </Link>
              <span className="whitespace-nowrap text-dim">
                {count(project.numExperiments)} {project.numExperiments === 1 ? "experiment" : "experiments"}
                {project.lastExperimentStartedAt && (
                  <>
                    , the last <Moment at={project.lastExperimentStartedAt} />
                  </>
                )}
              </span>
            </li>
          ))}
        </ul>
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
            <li key={pool.name} className={ROW}>
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
      <Link to="/experiments/new" className="text-accent underline">
        Create one here
      </Link>
      , from a script or a folder. Or run this where the configuration and the code are:
    </Empty>
  );
}
