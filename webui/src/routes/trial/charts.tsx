/**
 * The metrics of one trial as charts, or as a table of their latest values: zoomed by dragging, smoothed, by steps, time or
 * epochs, found by name, with its checkpoints; all of it stands in the address.
 */

import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import type { ChartSearch } from "../../addresses";
import { ChartMenu, COLUMNS, HEIGHTS, type Laid, LayoutMenu, useLayout } from "../../charts/layout";
import { nearest, smoothed } from "../../charts/lines";
import { MetricFinder } from "../../charts/MetricFinder";
import { named } from "../../charts/named";
import { elapsedAt, elapsedTicks } from "../../charts/ticks";
import { count } from "../../format";
import { own } from "../../own";
import { experimentQuery, type Trial } from "../../services/experiments";
import { arranged, type Layout } from "../../services/layouts";
import { useLive } from "../../services/live";
import { hasEnded } from "../../services/states";
import { type Series, type Summaries, seriesQuery, summariesQuery } from "../../services/trials";
import { Button, FIELD } from "../../ui/Button";
import { Chart, type Line, type Mark, type Zoom } from "../../ui/Chart";
import { Loading, Problem } from "../../ui/notices";
import { Section } from "../../ui/Page";
import { axisOf, EPOCH, type Saved, useSaved } from "./axis";
import { LatestValues } from "./latest";

/** Charts that are there at first; more come when asked for. */
const CHARTS = 12;

interface Metric {
  name: string;
  groups: string[];
}

/** Metrics by name; those of validation and training that have one name share a chart. */
export function metricsOf(summaries: Summaries): Metric[] {
  const groups = new Map<string, string[]>();
  const order = (group: string) => ["validation", "training"].indexOf(group) + 1 || 9;
  for (const group of Object.keys(summaries).sort((a, b) => order(a) - order(b) || a.localeCompare(b))) {
    for (const [name, summary] of Object.entries(summaries[group] ?? {})) {
      if (summary.count === undefined || isOfMachine(group)) continue;
      groups.set(name, [...(groups.get(name) ?? []), group]);
    }
  }
  return [...groups].map(([name, of]) => ({ name, groups: of }));
}

/** What machines measure has a page of its own. */
function isOfMachine(group: string): boolean {
  return ["gpu", "cpu", "memory", "disk", "network"].includes(group);
}

/** By epochs only where some group reports them. */
function reportsEpochs(summaries: Summaries): boolean {
  return Object.values(summaries).some((metrics) => metrics[EPOCH]?.count !== undefined);
}

export function Charts({ trial }: { trial: Trial }) {
  // An experiment of one trial shows its charts as well: the address may be that of either.
  const search: ChartSearch = useSearch({ strict: false });
  const navigate = useNavigate();
  const [shown, show] = useState(CHARTS);
  const settled = () => hasEnded(trial.state);
  const summaries = useLive(summariesQuery(trial.id), settled);
  const part = search.metric ?? "";
  const every = useMemo(() => metricsOf(summaries.data ?? {}), [summaries.data]);
  // The project whose layout holds.
  const experiment = useLive(experimentQuery(trial.experimentId), () => true).data?.experiment;
  const laid = useLayout(experiment?.projectId);
  const { layout } = laid;
  const matches = useMemo(() => named(part, search.pattern ?? false) ?? (() => true), [part, search.pattern]);
  const found = every.filter(({ name }) => matches(name));
  const metrics = arranged(
    found.filter(({ name }) => !layout.hidden.includes(name)),
    layout,
  );
  const names = metrics.map((metric) => metric.name);
  const change = (changed: ChartSearch) =>
    void navigate({ to: ".", search: (former: object) => ({ ...former, ...changed }), replace: true } as never);
  const saved = useSaved(trial);
  const epochs = reportsEpochs(summaries.data ?? {});
  return (
    <Section title="Metrics" aside={every.length > 0 && <Controls {...{ search, change, every, laid, epochs }} />}>
      {summaries.error && !summaries.data ? (
        <Problem error={summaries.error} retry={() => void summaries.refetch()} />
      ) : !summaries.data || !laid.ready || !experiment ? (
        <Loading what="metrics" />
      ) : search.view === "table" && found.length > 0 ? (
        <LatestValues summaries={summaries.data} matches={matches} />
      ) : metrics.length === 0 ? (
        <p className="rounded-md border border-line border-dashed p-3 text-dim">
          {found.length === 0 && every.length > 0
            ? "No matching metrics."
            : every.length > 0
              ? "All charts are hidden: Layout shows them."
              : "No metrics have been reported yet."}
        </p>
      ) : (
        <div className={`grid gap-3 ${COLUMNS[layout.size ?? "medium"]}`}>
          {metrics.slice(0, shown).map((each) => (
            <MetricChart
              key={each.name}
              trial={trial}
              metric={each}
              search={search}
              names={names}
              laid={laid}
              zoom={(from, to) => change({ from, to })}
              saved={saved}
            />
          ))}
        </div>
      )}
      {metrics.length > shown && search.view !== "table" && (
        <Button className="self-start" onClick={() => show(shown + CHARTS)}>
          Show more of the {count(metrics.length)} metrics
        </Button>
      )}
    </Section>
  );
}

interface ControlsProps {
  search: ChartSearch;
  change: (changed: ChartSearch) => void;
  every: Metric[];
  laid: Laid;
  /** Whether it reports epochs. */
  epochs: boolean;
}

/** From so many metrics on one looks for some by name. */
const MANY = 4;

function Controls({ search, change, every, laid, epochs }: ControlsProps) {
  const { layout } = laid;
  const { smooth, log, x } = mannerOf(search, layout);
  const zoomed = search.from !== undefined || search.to !== undefined;
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
      {every.length >= MANY && (
        <MetricFinder
          text={search.metric ?? ""}
          isPattern={search.pattern ?? false}
          onChange={({ text = search.metric, isPattern = search.pattern }) =>
            change({ metric: text || undefined, pattern: isPattern || undefined })
          }
        />
      )}
      <span className="inline-flex items-center gap-1 text-dim text-sm">
        Steps
        <StepField label="From step" value={search.from} onChange={(from) => change({ from })} />
        to
        <StepField label="To step" value={search.to} onChange={(to) => change({ to })} />
        {zoomed && <Button onClick={() => change({ from: undefined, to: undefined })}>All steps</Button>}
      </span>
      <select
        aria-label="Horizontal axis"
        className={FIELD}
        value={x ?? "steps"}
        onChange={({ target }) =>
          change({ x: target.value === (layout.x ?? "steps") ? undefined : (target.value as ChartSearch["x"]) })
        }
      >
        <option value="steps">By steps</option>
        <option value="time">By time</option>
        {(epochs || x === EPOCH) && <option value={EPOCH}>By epochs</option>}
      </select>
      <label className="inline-flex min-h-6 items-center gap-1 text-dim text-sm">
        <input
          type="checkbox"
          className="size-4 accent-(--accent)"
          checked={log}
          onChange={({ target }) =>
            change({ log: target.checked === (layout.log ?? false) ? undefined : target.checked })
          }
        />
        Logarithmic
      </label>
      <label className="inline-flex min-h-6 items-center gap-1 text-dim text-sm">
        Smoothing
        <input
          type="range"
          min={0}
          max={0.99}
          step={0.01}
          value={smooth}
          className="w-24 accent-accent"
          onChange={(event) => {
            const chosen = Number(event.target.value);
            change({ smooth: chosen === (layout.smooth ?? 0) ? undefined : chosen });
          }}
        />
      </label>
      <Button
        aria-pressed={search.view === "table"}
        onClick={() => change({ view: search.view === "table" ? undefined : "table" })}
      >
        Table
      </Button>
      <LayoutMenu
        {...laid}
        now={{ log: log || undefined, smooth: smooth || undefined, x: x === "time" ? x : undefined }}
        hidden={layout.hidden.filter((name) => every.some((metric) => metric.name === name))}
      />
    </div>
  );
}

/** A step that takes effect when it is left or by Enter. */
function StepField(props: { label: string; value?: number; onChange: (value?: number) => void }) {
  const shown = props.value === undefined ? "" : String(props.value);
  const take = (typed: string) => {
    const value = /^-?\d{1,15}$/.test(typed.trim()) ? Number(typed) : undefined;
    if (value !== props.value) props.onChange(value);
  };
  return (
    <input
      key={shown}
      aria-label={props.label}
      inputMode="numeric"
      className={`${FIELD} w-20`}
      defaultValue={shown}
      onBlur={(event) => take(event.target.value)}
      onKeyDown={(event) => {
        if (event.key === "Enter") take(event.currentTarget.value);
      }}
    />
  );
}

const ELAPSED = {
  ticks: elapsedTicks,
  across: (seconds: number | null | undefined, shown: number) => elapsedAt(seconds ?? 0, shown),
};

interface MetricChartProps {
  trial: Trial;
  metric: Metric;
  search: ChartSearch;
  zoom: Zoom;
  saved: Saved;
  /** Of all charts in their order. */
  names: string[];
  laid: Laid;
}

function MetricChart({ trial, metric, search, zoom, saved, names, laid }: MetricChartProps) {
  const { layout } = laid;
  const { from, to } = search;
  const { smooth, log, x } = mannerOf(search, layout);
  const settled = () => hasEnded(trial.state);
  const [first = "", second] = metric.groups;
  const steps = { from, to };
  const one = useLive(seriesQuery(trial.id, first, metric.name, steps), settled);
  const other = seriesQuery(trial.id, second ?? "", metric.name, steps);
  const two = useLive({ ...other, enabled: second !== undefined }, settled);
  const byEpoch = x === EPOCH;
  const epochs = useLive({ ...seriesQuery(trial.id, first, EPOCH, steps), enabled: byEpoch }, settled);
  const moreEpochs = seriesQuery(trial.id, second ?? "", EPOCH, steps);
  const others = useLive({ ...moreEpochs, enabled: byEpoch && second !== undefined }, settled);
  const axis = useMemo(
    () => axisOf(x, trial.startTime, [epochs.data, others.data]),
    [x, trial.startTime, epochs.data, others.data],
  );
  const lines = useMemo(() => {
    const made: Line[] = one.data ? [lineOf(first, one.data, axis.place)] : [];
    if (second !== undefined && two.data) made.push(lineOf(second, two.data, axis.place));
    if (smooth <= 0) return made;
    const raw = made.map((line) => ({ ...line, faint: true }));
    return [...raw, ...made.map((line) => ({ ...line, values: smoothed(line.values, smooth) }))];
  }, [one.data, two.data, first, second, smooth, axis]);
  const marks = useMemo(() => marksOf(saved, one.data, axis.place), [saved, one.data, axis]);
  // What was dragged lies between places of the axis; the address holds steps, which mean the same on any.
  const zoomTo = useCallback<Zoom>(
    (low, high) => {
      const shown = one.data ?? two.data;
      if (low === undefined || high === undefined || !shown) return zoom();
      const places = shown.steps.map((step, at) => axis.place(step, shown.times[at] ?? 0));
      const near = (place: number) => shown.steps[nearest(places, place)] ?? 0;
      const [first, last] = x === undefined ? [Math.ceil(low), Math.floor(high)] : [near(low), near(high)];
      if (first < last) zoom(first, last);
    },
    [one.data, two.data, x, axis, zoom],
  );
  const error = one.error ?? two.error;
  if (error && lines.length === 0) return <Problem error={error} retry={() => void one.refetch()} />;
  return (
    <Chart
      title={metric.name}
      lines={lines}
      onZoom={zoomTo}
      x={axis.title}
      {...(x === "time" && ELAPSED)}
      log={log}
      range={own(layout.ranges, metric.name)}
      height={HEIGHTS[layout.size ?? "medium"]}
      marks={marks}
      onMark={saved.open}
      aside={
        <>
          {marks.length > 0 && (
            <Link
              to="/trials/$trialId"
              params={{ trialId: trial.id }}
              search={{ tab: "checkpoints" }}
              className="inline-flex min-h-6 items-center whitespace-nowrap text-dim text-sm hover:text-text"
              title={`Checkpoints of ${metric.name}: the best one is filled`}
            >
              ◆ {count(marks.length)}
            </Link>
          )}
          <ChartMenu name={metric.name} title={metric.name} shown={names} {...laid} />
        </>
      }
    />
  );
}

/** How charts are drawn: as the address says, and where it says nothing as it is kept for the project. */
function mannerOf(search: ChartSearch, layout: Layout) {
  const { smooth = layout.smooth ?? 0, log = layout.log ?? false, x = layout.x } = search;
  return { smooth, log, x: x === "steps" ? undefined : x };
}

type Place = (step: number, time: number) => number;

function lineOf(name: string, series: Series, place: Place): Line {
  return { name, values: series.values, steps: series.steps.map((step, at) => place(step, series.times[at] ?? 0)) };
}

/** Where checkpoints stand on a line: inside of what it shows. */
function marksOf(saved: Saved, series: Series | undefined, place: Place): Mark[] {
  const [low, high] = [series?.steps[0], series?.steps.at(-1)];
  if (!series || low === undefined || high === undefined) return [];
  return saved.checkpoints
    .filter(({ step }) => low <= step && step <= high)
    .map(({ step, best }) => ({ at: place(step, series.times[nearest(series.steps, step)] ?? 0), best }));
}
