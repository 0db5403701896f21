/** One experiment: how it stands, its best trials' curves, and all of its trials. */

import { useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useCallback } from "react";
import { beside } from "../actions/beside";
import { ExperimentActions } from "../actions/experiments";
import { outcome } from "../actions/perform";
import { count } from "../format";
import { useCommands } from "../keys/commands";
import {
  type Experiment,
  experimentQuery,
  type Trial,
  type TrialSort,
  trialsQuery,
  WINDOW,
} from "../services/experiments";
import { useLive } from "../services/live";
import { hasEnded } from "../services/states";
import { compareQuery } from "../services/trials";
import { Chart } from "../ui/Chart";
import { Facts } from "../ui/Facts";
import { type Column, Grid } from "../ui/Grid";
import { Empty, Loading, Problem } from "../ui/notices";
import { say } from "../ui/overlays";
import { Page, Section } from "../ui/Page";
import { StateMark } from "../ui/State";
import { Moment, Progress, Ran, Value } from "../ui/values";
import { useWindows } from "../ui/windows";
import { TrialOverview } from "./trial";

const route = getRouteApi("/shell/experiments/$experimentId");
/** Trials in the chart. */
const BEST = 10;

export function ExperimentPage() {
  const { experimentId } = route.useParams();
  const shown = useLive(experimentQuery(experimentId), (data) => hasEnded(data.experiment.state));
  const name = `Experiment ${experimentId}`;
  useBeside(experimentId);
  if (!shown.data || shown.data.experiment.id !== experimentId) {
    return (
      <Page title={name} name={name}>
        {shown.error ? (
          <Problem error={shown.error} retry={() => void shown.refetch()} />
        ) : (
          <Loading what="the experiment" />
        )}
      </Page>
    );
  }
  const { experiment, jobSummary } = shown.data;
  const only = experiment.numTrials === 1 ? experiment.trialIds?.[0] : undefined;
  return (
    <Page title={experiment.name} name={experiment.name} aside={<About experiment={experiment} />}>
      {experiment.reason && <p className="break-words">{experiment.reason}</p>}
      <Written experiment={experiment} />
      <Facts
        facts={[
          ["Progress", <Progress key="p" share={experiment.progress ?? 0} label="Progress" />],
          [
            `Best ${experiment.searcherMetric || "metric"}`,
            <Value key="b" value={experiment.bestTrialSearcherMetric} />,
          ],
          ["Trials", count(experiment.numTrials ?? 0)],
          ["Search", experiment.searcherType || "–"],
          ["Pool", experiment.resourcePool || "–"],
          ["Ahead in queue", jobSummary ? count(jobSummary.jobsAhead ?? 0) : "–"],
          ["Ran for", <Ran key="r" of={experiment} />],
          ["Checkpoints", count(experiment.checkpointCount ?? 0)],
        ]}
      />
      {only !== undefined ? (
        <TrialOverview trialId={only} />
      ) : (
        <>
          <Best experiment={experiment} />
          <Trials experiment={experiment} />
        </>
      )}
    </Page>
  );
}

/** Leads to the experiments beside it in the list. */
function useBeside(id: number): void {
  const client = useQueryClient();
  const navigate = useNavigate();
  const go = async (step: 1 | -1) => {
    const experimentId = await beside(client, id, step);
    if (experimentId) await navigate({ to: "/experiments/$experimentId", params: { experimentId } });
    else say({ text: step > 0 ? "This is the last of the list" : "This is the first of the list" });
  };
  const ask = async (step: 1 | -1) => void (await outcome(go(step), "Go to the experiment beside"));
  useCommands([
    { name: "previous", title: "The previous experiment", run: () => void ask(-1) },
    { name: "next", title: "The next experiment", run: () => void ask(1) },
  ]);
}

function About({ experiment }: { experiment: Experiment }) {
  return (
    <>
      <StateMark state={experiment.state} />
      <p className="text-dim">
        Experiment {experiment.id} of {experiment.username}, in{" "}
        <Link
          to="/projects/$projectId"
          params={{ projectId: experiment.projectId }}
          className="underline hover:text-text"
        >
          {experiment.projectName}
        </Link>
        , started <Moment at={experiment.startTime} />
        {experiment.endTime && (
          <>
            , ended <Moment at={experiment.endTime} />
          </>
        )}
      </p>
      <ExperimentActions experiment={experiment} />
    </>
  );
}

/** What people wrote about it. */
function Written({ experiment }: { experiment: Experiment }) {
  const { description, labels = [], notes } = experiment;
  if (!description && labels.length === 0 && !notes) return null;
  return (
    <div className="flex min-w-0 flex-col gap-2">
      {description && <p className="break-words">{description}</p>}
      {labels.length > 0 && (
        <ul aria-label="Labels" className="flex flex-wrap gap-1.5">
          {labels.map((label) => (
            <li key={label} className="max-w-full truncate rounded-md border border-line bg-raised px-2">
              {label}
            </li>
          ))}
        </ul>
      )}
      {notes && <p className="max-h-40 overflow-y-auto whitespace-pre-wrap break-words text-dim">{notes}</p>}
    </div>
  );
}

/** The searcher's metric of the best trials, in one chart. */
function Best({ experiment }: { experiment: Experiment }) {
  const smaller = (experiment.config?.searcher as { smaller_is_better?: boolean } | undefined)?.smaller_is_better;
  const settled = () => hasEnded(experiment.state);
  const best = useLive(
    trialsQuery(experiment.id, "SORT_BY_BEST_VALIDATION_METRIC", smaller === false, 0, BEST),
    settled,
  );
  const ids = (best.data?.rows ?? []).filter((trial) => trial.bestValidation).map((trial) => trial.id);
  const metric = experiment.searcherMetric ?? "";
  const curves = useLive(compareQuery(ids, "validation", metric), settled);
  const lines = (curves.data ?? []).map((curve) => ({ name: `trial ${curve.trial}`, ...curve }));
  if (ids.length === 0) return null;
  return (
    <Section title={lines.length > 1 ? `The best ${lines.length} trials` : "The best trial"}>
      <Chart title={metric} lines={lines} />
    </Section>
  );
}

const TRIAL_SORTS: Record<string, TrialSort> = {
  id: "SORT_BY_ID",
  state: "SORT_BY_STATE",
  best: "SORT_BY_BEST_VALIDATION_METRIC",
  steps: "SORT_BY_BATCHES_PROCESSED",
  started: "SORT_BY_START_TIME",
  took: "SORT_BY_DURATION",
  restarts: "SORT_BY_RESTARTS",
};

function Trials({ experiment }: { experiment: Experiment }) {
  const navigate = useNavigate();
  const asked = route.useSearch().sort ?? "id";
  const name = asked.replace(/^-/, "");
  const sort = name in TRIAL_SORTS ? asked : "id";
  const order = TRIAL_SORTS[name] ?? "SORT_BY_ID";
  const windowOf = useCallback(
    (offset: number) => trialsQuery(experiment.id, order, sort.startsWith("-"), offset, WINDOW),
    [experiment.id, order, sort],
  );
  const found = useWindows<Trial>(windowOf, WINDOW);
  return (
    <Section title="Trials">
      {found.error && found.total === undefined ? (
        <Problem error={found.error} retry={found.retry} />
      ) : found.total === undefined ? (
        <Loading what="trials" />
      ) : found.total === 0 ? (
        <Empty title="It has no trials yet">They come once its search has begun.</Empty>
      ) : (
        <Grid
          label={`Trials of experiment ${experiment.id}`}
          className={found.total > 14 ? "h-[480px] flex-none" : "flex-none"}
          columns={TRIAL_COLUMNS}
          minWidth={760}
          total={found.total}
          rowAt={found.rowAt}
          keyOf={(row) => row.id}
          onView={found.onView}
          stale={found.stale}
          sort={sort}
          onSort={(to) => void navigate({ to: ".", search: { sort: to } } as never)}
          onOpen={(row) => void navigate({ to: "/trials/$trialId", params: { trialId: row.id } })}
        />
      )}
    </Section>
  );
}

function tried(hparams: Record<string, unknown>): string {
  return Object.entries(hparams)
    .map(
      ([name, value]) => `${name} ${typeof value === "number" ? Number(value.toPrecision(4)) : JSON.stringify(value)}`,
    )
    .join(", ");
}

const TRIAL_COLUMNS: Column<Trial>[] = [
  {
    id: "id",
    title: "Trial",
    width: "80px",
    align: "right",
    sort: "id",
    cell: (row) => (
      <Link to="/trials/$trialId" params={{ trialId: row.id }} tabIndex={-1} className="hover:underline">
        {row.id}
      </Link>
    ),
  },
  {
    id: "state",
    title: "State",
    width: "130px",
    sort: "state",
    cell: (row) => <StateMark state={row.state} reason={row.reason} />,
  },
  {
    id: "best",
    title: "Best metric",
    width: "110px",
    align: "right",
    sort: "best",
    cell: (row) => <Value value={row.searcherMetricValue} />,
  },
  {
    id: "steps",
    title: "Steps",
    width: "90px",
    align: "right",
    sort: "steps",
    cell: (row) => count(row.totalBatchesProcessed ?? 0),
  },
  {
    id: "hparams",
    title: "Hyperparameters",
    width: "minmax(160px, 1fr)",
    cell: (row) => <span title={tried(row.hparams)}>{tried(row.hparams) || "–"}</span>,
  },
  { id: "restarts", title: "Restarts", width: "80px", align: "right", sort: "restarts", cell: (row) => row.restarts },
  { id: "started", title: "Started", width: "100px", sort: "started", cell: (row) => <Moment at={row.startTime} /> },
  {
    id: "took",
    title: "Ran for",
    width: "100px",
    align: "right",
    cell: (row) => <Ran of={row} />,
  },
];
