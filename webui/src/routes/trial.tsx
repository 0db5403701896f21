/** One trial: how it stands, its metrics as charts, and the end of its output. */

import { getRouteApi, Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { TrialActions } from "../actions/trials";
import { count } from "../format";
import { Output as OutputView } from "../output/Output";
import type { TrialTab } from "../router";
import type { Trial } from "../services/experiments";
import { useLive } from "../services/live";
import { hasEnded } from "../services/states";
import { logTailQuery, type Summaries, seriesQuery, summariesQuery, TAIL, trialQuery } from "../services/trials";
import { Button } from "../ui/Button";
import { Chart } from "../ui/Chart";
import { Facts } from "../ui/Facts";
import { Log } from "../ui/Log";
import { Empty, Loading, Problem } from "../ui/notices";
import { Page, Section } from "../ui/Page";
import { SearchField } from "../ui/SearchField";
import { StateMark } from "../ui/State";
import { Elapsed, Moment, Progress, Ran, Value } from "../ui/values";
import { Attempts, Checkpoints, Configuration } from "./trial/tabs";
import { Verdict } from "./trial/verdict";

const route = getRouteApi("/shell/trials/$trialId");
/** Charts that are there at first; more come when asked for. */
const CHARTS = 12;
/** In these it has slots. */
const HOLDING: ReadonlySet<Trial["state"]> = new Set(["STATE_PULLING", "STATE_STARTING", "STATE_RUNNING"]);

function useTrial(id: number) {
  return useLive(trialQuery(id), (data) => hasEnded(data.state));
}

export function TrialPage() {
  const { trialId } = route.useParams();
  const { tab } = route.useSearch();
  const shown = useTrial(trialId);
  const name = `Trial ${trialId}`;
  const trial = shown.data?.id === trialId ? shown.data : undefined;
  if (!trial) {
    return (
      <Page title={name} name={name}>
        {shown.error ? (
          <Problem error={shown.error} retry={() => void shown.refetch()} />
        ) : (
          <Loading what="the trial" />
        )}
      </Page>
    );
  }
  return (
    <Page title={name} name={name} full={tab === "logs"} aside={<About trial={trial} />}>
      <Tabs tab={tab} trialId={trialId} />
      <Verdict trial={trial} />
      {tab === "logs" && <OutputView key={trialId} trialId={trialId} ended={hasEnded(trial.state)} />}
      {tab === "metrics" && <Charts trial={trial} />}
      {tab === "checkpoints" && <Checkpoints trialId={trialId} />}
      {tab === "config" && <Configuration trial={trial} />}
      {tab === "attempts" && <Attempts trial={trial} />}
      {tab === undefined && (
        <>
          <TrialFacts trial={trial} />
          <TrialOverview trialId={trialId} />
        </>
      )}
    </Page>
  );
}

function About({ trial }: { trial: Trial }) {
  return (
    <>
      <StateMark state={trial.state} />
      <p className="text-dim">
        of{" "}
        <Link
          to="/experiments/$experimentId"
          params={{ experimentId: trial.experimentId }}
          className="underline hover:text-text"
        >
          experiment {trial.experimentId}
        </Link>
        , started <Moment at={trial.startTime} />
        {trial.endTime && (
          <>
            , ended <Moment at={trial.endTime} />
          </>
        )}
      </p>
      <TrialActions trial={trial} />
    </>
  );
}

const TAB_WORDS: Record<TrialTab, string> = {
  metrics: "Metrics",
  logs: "Output",
  checkpoints: "Checkpoints",
  config: "Configuration",
  attempts: "Attempts",
};

function Tabs({ tab, trialId }: { tab?: TrialTab; trialId: number }) {
  const look = "inline-flex min-h-8 items-center whitespace-nowrap border-b-2 px-2";
  return (
    <nav aria-label="Parts of this trial" className="-mb-2 flex shrink-0 flex-wrap gap-x-2 border-line border-b">
      {([undefined, ...Object.keys(TAB_WORDS)] as (TrialTab | undefined)[]).map((part) => (
        <Link
          key={part ?? "overview"}
          to="/trials/$trialId"
          params={{ trialId }}
          search={{ tab: part }}
          aria-current={tab === part ? "page" : undefined}
          className={`${look} ${tab === part ? "border-accent font-medium" : "border-transparent text-dim"}`}
        >
          {part ? TAB_WORDS[part] : "Overview"}
        </Link>
      ))}
    </nav>
  );
}

function TrialFacts({ trial }: { trial: Trial }) {
  return (
    <Facts
      facts={[
        [
          "Progress",
          trial.progress === null || trial.progress === undefined ? (
            "–"
          ) : (
            <Progress key="p" share={trial.progress} label="Progress" />
          ),
        ],
        ["Best of the search's metric", <Value key="b" value={trial.searcherMetricValue} />],
        ["Steps", count(trial.totalBatchesProcessed ?? 0)],
        ["Ran for", <Ran key="r" of={trial} />],
        [
          "Held its slots for",
          <Elapsed key="h" seconds={trial.wallClockTime} asOf={trial.asOf} runs={HOLDING.has(trial.state)} />,
        ],
        ["Restarts", count(trial.restarts)],
        ["Checkpoints", count(trial.checkpointCount ?? 0)],
        ["Attempt", count(trial.runId ?? 0)],
        ...Object.entries(trial.hparams)
          .slice(0, 8)
          .map(([name, value]): [string, string] => [name, typeof value === "string" ? value : JSON.stringify(value)]),
      ]}
    />
  );
}

/** Charts and the end of the output; an experiment of one trial shows them, too. */
export function TrialOverview({ trialId }: { trialId: number }) {
  const trial = useTrial(trialId).data;
  if (!trial || trial.id !== trialId) return <Loading what="the trial" />;
  return (
    <>
      <Charts trial={trial} />
      <Section
        title="Output"
        aside={
          <Link to="/trials/$trialId" params={{ trialId }} search={{ tab: "logs" }} className="text-accent underline">
            More of it
          </Link>
        }
      >
        <Output trial={trial} lines={TAIL} className="h-60" />
      </Section>
    </>
  );
}

function Output({ trial, lines, className }: { trial: Trial; lines: number; className: string }) {
  const settled = () => hasEnded(trial.state);
  const tail = useLive(logTailQuery(trial.id, lines), settled);
  if (tail.error && !tail.data) return <Problem error={tail.error} retry={() => void tail.refetch()} />;
  if (!tail.data) return <Loading what="output" />;
  if (tail.data.length === 0) {
    return (
      <Empty title="It has written nothing yet" command={`tenax trial logs -f ${trial.id}`}>
        What it writes appears here, and at the command line:
      </Empty>
    );
  }
  return <Log lines={tail.data} label={`Output of trial ${trial.id}`} className={className} />;
}

interface Metric {
  name: string;
  groups: string[];
}

/** Metrics by name; those of validation and training that have one name share a chart. */
export function metricsOf(summaries: Summaries, part: string): Metric[] {
  const groups = new Map<string, string[]>();
  const order = (group: string) => ["validation", "training"].indexOf(group) + 1 || 9;
  for (const group of Object.keys(summaries).sort((a, b) => order(a) - order(b) || a.localeCompare(b))) {
    for (const [name, summary] of Object.entries(summaries[group] ?? {})) {
      if (summary.count === undefined || !name.toLowerCase().includes(part.toLowerCase())) continue;
      groups.set(name, [...(groups.get(name) ?? []), group]);
    }
  }
  return [...groups].map(([name, of]) => ({ name, groups: of }));
}

function Charts({ trial }: { trial: Trial }) {
  // An experiment of one trial shows its charts as well: the address may be that of either.
  const metric = useSearch({ strict: false });
  const navigate = useNavigate();
  const [shown, show] = useState(CHARTS);
  const settled = () => hasEnded(trial.state);
  const summaries = useLive(summariesQuery(trial.id), settled);
  const part = metric.metric ?? "";
  const every = useMemo(() => metricsOf(summaries.data ?? {}, ""), [summaries.data]);
  const metrics = useMemo(() => metricsOf(summaries.data ?? {}, part), [summaries.data, part]);
  return (
    <Section
      title="Metrics"
      aside={
        every.length > 3 && (
          <SearchField
            value={part}
            label="Part of a metric's name"
            onChange={(to) =>
              void navigate({
                to: ".",
                search: (s: object) => ({ ...s, metric: to || undefined }),
                replace: true,
              } as never)
            }
          />
        )
      }
    >
      {summaries.error && !summaries.data ? (
        <Problem error={summaries.error} retry={() => void summaries.refetch()} />
      ) : !summaries.data ? (
        <Loading what="metrics" />
      ) : metrics.length === 0 ? (
        <p className="rounded-md border border-line border-dashed p-3 text-dim">
          {part ? "No metric is called so." : "It has reported no metrics yet."}
        </p>
      ) : (
        <div className="grid grid-cols-[repeat(auto-fill,minmax(min(360px,100%),1fr))] gap-3">
          {metrics.slice(0, shown).map((each) => (
            <MetricChart key={each.name} trial={trial} metric={each} />
          ))}
        </div>
      )}
      {metrics.length > shown && (
        <Button className="self-start" onClick={() => show(shown + CHARTS)}>
          Show more of the {count(metrics.length)} metrics
        </Button>
      )}
    </Section>
  );
}

function MetricChart({ trial, metric }: { trial: Trial; metric: Metric }) {
  const settled = () => hasEnded(trial.state);
  const [first = "", second] = metric.groups;
  const one = useLive(seriesQuery(trial.id, first, metric.name), settled);
  const two = useLive({ ...seriesQuery(trial.id, second ?? "", metric.name), enabled: second !== undefined }, settled);
  const lines = useMemo(() => {
    const made = one.data ? [{ name: first, ...one.data }] : [];
    return second !== undefined && two.data ? [...made, { name: second, ...two.data }] : made;
  }, [one.data, two.data, first, second]);
  const error = one.error ?? two.error;
  if (error && lines.length === 0) return <Problem error={error} retry={() => void one.refetch()} />;
  return <Chart title={metric.name} lines={lines} />;
}
