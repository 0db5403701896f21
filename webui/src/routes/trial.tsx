/** One trial: how it stands, its metrics as charts, and the end of its output. */

import { getRouteApi, Link } from "@tanstack/react-router";
import { Suspense, useMemo } from "react";
import { TrialActions } from "../actions/trials";
import type { TrialTab } from "../addresses";
import { count, duration, number } from "../format";
import { brought, lazy } from "../parts";
import { experimentQuery, type Trial } from "../services/experiments";
import { useLive } from "../services/live";
import { tailQuery } from "../services/output";
import { hasEnded } from "../services/states";
import { type Health, trialQuery } from "../services/trials";
import { Facts } from "../ui/Facts";
import { Empty, Loading, Problem } from "../ui/notices";
import { useNowIf } from "../ui/now";
import { Page, Section } from "../ui/Page";
import { StateMark } from "../ui/State";
import { Elapsed, Moment, Progress, Ran, Value } from "../ui/values";
import { visible } from "../visible";
import { Charts } from "./trial/charts";
import { Findings, useHealth } from "./trial/health";
import { LastLine } from "./trial/lastline";

/** Each comes where it is shown. */
/** Asked for at once, and waited for by nothing else. */
const log = brought(() => import("../ui/Log"));
const Log = lazy(() => log.then(({ Log }) => ({ default: Log })));
const Checkpoints = lazy(() => import("./trial/checkpoints").then(({ Checkpoints }) => ({ default: Checkpoints })));
const Code = lazy(() => import("./trial/code").then(({ Code }) => ({ default: Code })));
const Configuration = lazy(() =>
  import("./trial/configuration").then(({ Configuration }) => ({ default: Configuration })),
);
const OutputView = lazy(() => import("../output/Output").then(({ Output }) => ({ default: Output })));
const Events = lazy(() => import("./trial/events").then(({ Events }) => ({ default: Events })));
const System = lazy(() => import("./trial/system").then(({ System }) => ({ default: System })));

const route = getRouteApi("/shell/trials/$trialId");
/** In these it has slots. */
const HOLDING: ReadonlySet<Trial["state"]> = new Set(["STATE_PULLING", "STATE_STARTING", "STATE_RUNNING"]);

function useTrial(id: number) {
  return useLive(trialQuery(id), (data) => hasEnded(data.state));
}

export function TrialPage() {
  const { trialId } = route.useParams();
  const { tab, file, checkpoint } = route.useSearch();
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
      <Findings trialId={trialId} />
      {tab === "metrics" && <Charts trial={trial} />}
      <Suspense fallback={<Loading what="this part" />}>
        {tab === "logs" && <OutputView key={trialId} of={trialId} ended={hasEnded(trial.state)} />}
        {tab === "config" && <Configuration trial={trial} />}
        {tab === "system" && <System trial={trial} />}
        {tab === "checkpoints" && <Checkpoints trial={trial} chosen={checkpoint} />}
        {tab === "code" && <Code trial={trial} file={file} />}
        {tab === "events" && <Events trial={trial} />}
      </Suspense>
      {tab === undefined && (
        <>
          <Vitals trial={trial} />
          <Charts trial={trial} />
          <Hyperparameters trial={trial} />
        </>
      )}
      {tab !== "logs" && <LastLine trial={trial} />}
    </Page>
  );
}

function About({ trial }: { trial: Trial }) {
  const experiment = useLive(experimentQuery(trial.experimentId), () => true).data?.experiment;
  // That of the trial before may still stand there.
  const name = experiment?.id === trial.experimentId ? visible(experiment.name) : "";
  return (
    <>
      <StateMark state={trial.state} />
      <p className="min-w-0 text-dim">
        of{" "}
        <Link
          to="/experiments/$experimentId"
          params={{ experimentId: trial.experimentId }}
          className="inline-block max-w-[min(24rem,100%)] truncate align-bottom underline hover:text-text"
          title={name}
        >
          experiment {trial.experimentId} {name}
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
  system: "System",
  checkpoints: "Checkpoints",
  code: "Code",
  config: "Configuration",
  events: "Events",
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

/** What one looks at first. */
function Vitals({ trial }: { trial: Trial }) {
  const health = useHealth(trial.id).data;
  const metric = health?.metric ? `Best ${health.metric}` : "Best metric";
  const running = trial.state === "STATE_RUNNING";
  return (
    <Facts
      facts={[
        [
          "Progress",
          trial.progress === null || trial.progress === undefined ? (
            <span key="p">step {count(trial.totalBatchesProcessed ?? 0)}</span>
          ) : (
            <Progress key="p" share={trial.progress} label="Progress" />
          ),
        ],
        hasEnded(trial.state)
          ? ["Ran for", <Ran key="t" of={trial} />]
          : ["Time left", <Left key="t" seconds={health?.secondsLeft} asOf={health?.asOf} />],
        [metric, <Value key="b" value={trial.searcherMetricValue ?? health?.best} />],
        ["Slots", <Slots key="s" health={health} />],
        ["Utilisation", <Utilisation key="u" health={health} />],
        ["Time per step", health?.stepSeconds ? stepTime(health.stepSeconds) : "–"],
        [
          "Restarts",
          health?.maxRestarts
            ? `${count(trial.restarts)} of at most ${count(health.maxRestarts)}`
            : count(trial.restarts),
        ],
        ["Last line", <Age key="l" seconds={health?.lineSeconds} asOf={health?.asOf} goes={running} />],
      ]}
    />
  );
}

function Slots({ health }: { health?: Health }) {
  if (!health?.slots) return <>–</>;
  const machines = (health.agents ?? []).join(", ");
  return (
    <span title={machines}>
      {count(health.slots)}
      {machines && ` on ${machines}`}
    </span>
  );
}

function Utilisation({ health }: { health?: Health }) {
  const [gpu, cpu] = [health?.gpuPercent ?? undefined, health?.cpuPercent ?? undefined];
  if (gpu === undefined && cpu === undefined) return <span title="The profiler is off: profiling.enabled">–</span>;
  return <>{gpu === undefined ? `CPU ${Math.round(cpu ?? 0)} %` : `GPU ${Math.round(gpu)} %`}</>;
}

/** Goes down by itself while nothing new is known. */
function Left({ seconds, asOf }: { seconds?: number | null; asOf?: number }) {
  const known = seconds !== null && seconds !== undefined && asOf !== undefined;
  const now = useNowIf(known, 1000);
  return <>{known ? `about ${duration(Math.max(0, seconds - Math.max(0, now - asOf) / 1000))}` : "–"}</>;
}

function Age({ seconds, asOf, goes }: { seconds?: number | null; asOf?: number; goes: boolean }) {
  const now = useNowIf(goes && asOf !== undefined, 1000);
  if (seconds === null || seconds === undefined) return <>–</>;
  return <>{duration(seconds + (goes && asOf !== undefined ? Math.max(0, now - asOf) / 1000 : 0))} ago</>;
}

/** `12.5 ms`, `1.2 s`, `5 m 12 s`. */
function stepTime(seconds: number): string {
  return seconds < 1 ? `${number(seconds * 1000)} ms` : seconds < 60 ? `${number(seconds)} s` : duration(seconds);
}

/** What is looked at less often; hyperparameters as they were drawn. */
function Hyperparameters({ trial }: { trial: Trial }) {
  return (
    <Facts
      facts={[
        ["Steps", count(trial.totalBatchesProcessed ?? 0)],
        [
          "Held slots for",
          <Elapsed key="h" seconds={trial.wallClockTime} asOf={trial.asOf} runs={HOLDING.has(trial.state)} />,
        ],
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
      <Findings trialId={trialId} />
      <Charts trial={trial} />
      <Section
        title="Output"
        aside={
          <Link to="/trials/$trialId" params={{ trialId }} search={{ tab: "logs" }} className="text-accent underline">
            All output
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
      <Empty title="No output yet" command={`tenax trial logs -f ${trial.id}`}>
        Its output appears here, and at the command line:
      </Empty>
    );
  }
  return (
    <Suspense fallback={<div className="h-60" />}>
      <Log lines={lines} label={`Output of trial ${trial.id}`} className="h-60" />
    </Suspense>
  );
}
