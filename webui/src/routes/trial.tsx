/** One trial: how it stands, its metrics as charts, and the end of its output. */

import { getRouteApi, Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { TrialActions } from "../actions/trials";
import { count } from "../format";
import { Output as OutputView } from "../output/Output";
import type { TrialTab } from "../router";
import type { Trial } from "../services/experiments";
import { useLive } from "../services/live";
import { tailQuery } from "../services/output";
import { hasEnded } from "../services/states";
import { trialQuery } from "../services/trials";
import { Facts } from "../ui/Facts";
import { Log } from "../ui/Log";
import { Empty, Loading, Problem } from "../ui/notices";
import { Page, Section } from "../ui/Page";
import { StateMark } from "../ui/State";
import { Elapsed, Moment, Progress, Ran, Value } from "../ui/values";
import { Charts } from "./trial/charts";
import { Attempts, Checkpoints, Configuration } from "./trial/tabs";
import { Verdict } from "./trial/verdict";

const route = getRouteApi("/shell/trials/$trialId");
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
        <Tail trial={trial} />
      </Section>
    </>
  );
}

function Tail({ trial }: { trial: Trial }) {
  const settled = () => hasEnded(trial.state);
  const tail = useLive(tailQuery(trial.id), settled);
  const lines = useMemo(() => [...(tail.data?.lines ?? []), ...(tail.data?.unfinished ?? [])], [tail.data]);
  if (tail.error && !tail.data) return <Problem error={tail.error} retry={() => void tail.refetch()} />;
  if (!tail.data) return <Loading what="output" />;
  if (lines.length === 0) {
    return (
      <Empty title="It has written nothing yet" command={`tenax trial logs -f ${trial.id}`}>
        What it writes appears here, and at the command line:
      </Empty>
    );
  }
  return <Log lines={lines} label={`Output of trial ${trial.id}`} className="h-60" />;
}
