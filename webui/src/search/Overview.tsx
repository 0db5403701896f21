/** The search of an experiment: how its best came about, its best trial, where its trials stand, and what decides. */

import { Link } from "@tanstack/react-router";
import { Suspense, useMemo } from "react";
import { Curves } from "../charts/Curves";
import type { TrialLine } from "../charts/lines";
import { looksOf } from "../charts/palette";
import { count, number } from "../format";
import { lazy } from "../parts";
import { manySeriesQuery } from "../services/comparing";
import type { Experiment } from "../services/experiments";
import { useLive } from "../services/live";
import {
  type Brushes,
  historyQuery,
  importanceQuery,
  type SearchedTrial,
  searchQuery,
  searchTrialsQuery,
} from "../services/searching";
import { hasEnded } from "../services/states";
import { useShownTheme } from "../theme";
import { FIELD } from "../ui/Button";
import { Facts } from "../ui/Facts";
import { Problem } from "../ui/notices";
import { Section } from "../ui/Page";
import { Value } from "../ui/values";
import { arrangedAxes, axesOf } from "./axes";
import { BEST_CURVES } from "./curves";
import { Importance } from "./Importance";
import { Parallel } from "./Parallel";
import { Rungs } from "./Rungs";

/** Below what is seen at first. */
const HeatMap = lazy(() => import("./HeatMap"));
const Scatter = lazy(() => import("./Scatter"));

/** Of more curves than that only the first few have a colour of their own. */
const COLOURED = 50;
const FIRST = 3;
/** Axes beside that of the metric: more no screen has room for. */
const AXES = 10;

interface OverviewProps {
  experiment: Experiment;
  brushes: Brushes;
  onBrush: (brushes: Brushes) => void;
  /** How many of the best trials have their curves drawn. */
  best: number;
  onBest: (best: number) => void;
  /** Axes as somebody arranged them. */
  order: readonly string[];
  flipped: readonly string[];
  onArrange: (changed: { order?: string[]; flipped?: string[] }) => void;
}

export function Overview(props: OverviewProps) {
  const { experiment, brushes, onBrush, best, onBest, order, flipped, onArrange } = props;
  const settled = () => hasEnded(experiment.state);
  const found = useLive(searchTrialsQuery(experiment.id), settled);
  const search = useLive(searchQuery(experiment.id), settled);
  const shares = useLive(importanceQuery(experiment.id), settled);
  const data = found.data;
  const important = useMemo(() => (shares.data?.hyperparameters ?? []).map((each) => each.name), [shares.data]);
  const axes = useMemo(
    () => (data ? arrangedAxes(axesOf(data.trials, data.metric, important, AXES), order, flipped) : []),
    [data, important, order, flipped],
  );
  if (found.error && !data) return <Problem error={found.error} retry={() => void found.refetch()} />;
  if (!data || data.trials.length === 0) return null;
  const ranked = data.trials.filter((trial) => trial.metric !== null && trial.metric !== undefined);
  const isSearched = axes.length > 1;
  return (
    <>
      {ranked.length > 0 && (
        <div className="grid grid-cols-1 gap-4 lg:grid-cols-2">
          <BestSoFar experiment={experiment} metric={data.metric} />
          <Learning ranked={ranked} metric={data.metric} best={best} onBest={onBest} ended={settled()} />
        </div>
      )}
      <div className="grid grid-cols-1 gap-x-6 gap-y-4 lg:grid-cols-2">
        {ranked[0] && <Best trial={ranked[0]} next={ranked[1]} metric={data.metric} />}
        {search.data && (
          <Section title="Where its trials stand">
            <Rungs search={search.data} />
          </Section>
        )}
      </div>
      {isSearched && (
        <>
          {data.total > data.trials.length && (
            <p className="-mb-2 text-dim">
              Showing the best {count(data.trials.length)} of {count(data.total)} trials.
            </p>
          )}
          <Parallel
            trials={data.trials}
            axes={axes}
            brushes={brushes}
            onBrush={onBrush}
            onOrder={(names) => onArrange({ order: names })}
            onFlip={(name) =>
              onArrange({
                flipped: flipped.includes(name) ? flipped.filter((each) => each !== name) : [...flipped, name],
              })
            }
          />
          <div className="grid grid-cols-1 gap-x-6 gap-y-4 lg:grid-cols-2">
            <Section title="What matters">
              {shares.data ? <Importance shares={shares.data} /> : <p className="appears-late text-dim">Computing…</p>}
            </Section>
            <Suspense>
              <Scatter trials={data.trials} axes={axes} brushes={brushes} />
              <HeatMap
                trials={data.trials}
                axes={axes}
                smallerIsBetter={data.smallerIsBetter}
                brushes={brushes}
                onBrush={onBrush}
              />
            </Suspense>
          </div>
        </>
      )}
    </>
  );
}

/** Steps from one improvement to the next. */
function BestSoFar({ experiment, metric }: { experiment: Experiment; metric: string }) {
  const history = useLive(historyQuery(experiment.id), () => hasEnded(experiment.state));
  const theme = useShownTheme();
  const entries = history.data;
  const lines = useMemo((): TrialLine[] => {
    if (!entries?.length) return [];
    const begin = Date.parse(experiment.startTime);
    const x: number[] = [];
    const y: number[] = [];
    for (const { endTime, searcherMetric } of entries) {
      const at = Math.max(0, (Date.parse(endTime) - begin) / 1000, x.at(-1) ?? 0);
      const before = y.at(-1);
      if (before !== undefined) {
        x.push(at);
        y.push(before);
      }
      x.push(at);
      y.push(searcherMetric);
    }
    const end = experiment.endTime ? (Date.parse(experiment.endTime) - begin) / 1000 : 0;
    if (end > (x.at(-1) ?? 0)) {
      x.push(end);
      y.push(y.at(-1) as number);
    }
    return [{ trial: 0, ...rising(x, y) }];
  }, [entries, experiment.startTime, experiment.endTime]);
  const looks = useMemo(() => looksOf([0], theme), [theme]);
  return (
    <Curves
      title={`Best ${metric} so far`}
      lines={lines}
      looks={looks}
      axis="time"
      nameOf={() => "best so far"}
      waiting={entries ? "No validation yet." : history.error ? history.error.message : "Loading…"}
    />
  );
}

/** A step is two points at one time: charts want times that rise. */
function rising(x: number[], y: number[]): { x: number[]; y: number[] } {
  const width = ((x.at(-1) ?? 0) - (x[0] ?? 0) || 1) * 1e-6;
  return { x: x.map((at, place) => at + place * width), y };
}

function Learning(props: {
  ranked: SearchedTrial[];
  metric: string;
  best: number;
  onBest: (best: number) => void;
  ended: boolean;
}) {
  const { ranked, metric, best, onBest, ended } = props;
  const theme = useShownTheme();
  const chosen = ranked
    .slice(0, best)
    .map((trial) => trial.id)
    .join(",");
  const ids = useMemo(() => chosen.split(",").map(Number), [chosen]);
  const series = useLive(manySeriesQuery(ids, "validation", metric), () => ended);
  const lines = useMemo(
    () => (series.data ?? []).map((line): TrialLine => ({ trial: line.trialId, x: line.steps, y: line.values })),
    [series.data],
  );
  const looks = useMemo(() => looksOf(ids.slice(0, ids.length > COLOURED ? FIRST : ids.length), theme), [ids, theme]);
  return (
    <Curves
      title={`${metric} of the best ${ids.length > 1 ? `${count(ids.length)} trials` : "trial"}`}
      lines={lines}
      looks={looks}
      axis="steps"
      waiting={series.error ? series.error.message : "Loading…"}
      aside={
        ranked.length > (BEST_CURVES[0] ?? 0) && (
          <select
            aria-label="Curves"
            className={FIELD}
            value={best}
            onChange={(event) => onBest(Number(event.target.value))}
          >
            {BEST_CURVES.map((number, place) => (
              <option
                key={number}
                value={number}
                disabled={place > 0 && ranked.length <= (BEST_CURVES[place - 1] ?? 0)}
              >
                {number} curves
              </option>
            ))}
          </select>
        )
      }
    />
  );
}

function Best({ trial, next, metric }: { trial: SearchedTrial; next?: SearchedTrial; metric: string }) {
  const margin =
    next && typeof next.metric === "number" && typeof trial.metric === "number"
      ? Math.abs(next.metric - trial.metric)
      : undefined;
  const hparams = Object.entries(trial.hparams as Record<string, unknown>);
  return (
    <Section
      title="The best trial"
      aside={
        <>
          <Link to="/trials/$trialId" params={{ trialId: trial.id }} className="text-accent underline">
            Trial {trial.id}
          </Link>
          {next && (
            <Link to="/compare" search={{ trials: `${trial.id},${next.id}` }} className="text-accent underline">
              Compare it with the second, trial {next.id}
            </Link>
          )}
        </>
      }
    >
      <Facts
        facts={[
          [metric, <Value key="metric" value={trial.metric} />],
          ...(margin === undefined ? [] : [["Better by", number(margin)] as [string, string]]),
          ...hparams
            .slice(0, 8)
            .map(([name, value]): [string, string] => [
              name,
              typeof value === "number" ? number(value) : String(value),
            ]),
        ]}
      />
    </Section>
  );
}
