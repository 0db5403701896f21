/** The metrics of one trial as charts: zoomed by dragging, smoothed, found by name; all of it stands in the address. */

import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { smoothed } from "../../charts/lines";
import { count } from "../../format";
import type { ChartSearch } from "../../router";
import type { Trial } from "../../services/experiments";
import { useLive } from "../../services/live";
import { hasEnded } from "../../services/states";
import { type Summaries, seriesQuery, summariesQuery } from "../../services/trials";
import { Button, FIELD } from "../../ui/Button";
import { Chart, type Line, type Zoom } from "../../ui/Chart";
import { Loading, Problem } from "../../ui/notices";
import { Section } from "../../ui/Page";
import { SearchField } from "../../ui/SearchField";

/** Charts that are there at first; more come when asked for. */
const CHARTS = 12;

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

export function Charts({ trial }: { trial: Trial }) {
  // An experiment of one trial shows its charts as well: the address may be that of either.
  const search: ChartSearch = useSearch({ strict: false });
  const navigate = useNavigate();
  const [shown, show] = useState(CHARTS);
  const settled = () => hasEnded(trial.state);
  const summaries = useLive(summariesQuery(trial.id), settled);
  const part = search.metric ?? "";
  const every = useMemo(() => metricsOf(summaries.data ?? {}, ""), [summaries.data]);
  const metrics = useMemo(() => metricsOf(summaries.data ?? {}, part), [summaries.data, part]);
  const change = (changed: ChartSearch) =>
    void navigate({ to: ".", search: (former: object) => ({ ...former, ...changed }), replace: true } as never);
  return (
    <Section
      title="Metrics"
      aside={every.length > 0 && <Controls search={search} change={change} many={every.length > 3} />}
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
            <MetricChart
              key={each.name}
              trial={trial}
              metric={each}
              search={search}
              zoom={(from, to) => change({ from, to })}
            />
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

interface ControlsProps {
  search: ChartSearch;
  change: (changed: ChartSearch) => void;
  /** Whether there are so many metrics that one looks for some by name. */
  many: boolean;
}

function Controls({ search, change, many }: ControlsProps) {
  const zoomed = search.from !== undefined || search.to !== undefined;
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
      {many && (
        <SearchField
          value={search.metric ?? ""}
          label="Part of a metric's name"
          onChange={(to) => change({ metric: to || undefined })}
        />
      )}
      <span className="inline-flex items-center gap-1 text-dim text-sm">
        Steps
        <StepField label="From step" value={search.from} onChange={(from) => change({ from })} />
        to
        <StepField label="To step" value={search.to} onChange={(to) => change({ to })} />
        {zoomed && <Button onClick={() => change({ from: undefined, to: undefined })}>All steps</Button>}
      </span>
      <label className="inline-flex min-h-6 items-center gap-1 text-dim text-sm">
        Smoothing
        <input
          type="range"
          min={0}
          max={0.99}
          step={0.01}
          value={search.smooth ?? 0}
          className="w-24 accent-accent"
          onChange={(event) => change({ smooth: Number(event.target.value) || undefined })}
        />
      </label>
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

interface MetricChartProps {
  trial: Trial;
  metric: Metric;
  search: ChartSearch;
  zoom: Zoom;
}

function MetricChart({ trial, metric, search: { from, to, smooth = 0 }, zoom }: MetricChartProps) {
  const settled = () => hasEnded(trial.state);
  const [first = "", second] = metric.groups;
  const one = useLive(seriesQuery(trial.id, first, metric.name, { from, to }), settled);
  const other = seriesQuery(trial.id, second ?? "", metric.name, { from, to });
  const two = useLive({ ...other, enabled: second !== undefined }, settled);
  const lines = useMemo(() => {
    const made: Line[] = one.data ? [{ name: first, ...one.data }] : [];
    if (second !== undefined && two.data) made.push({ name: second, ...two.data });
    if (smooth <= 0) return made;
    const raw = made.map((line) => ({ ...line, faint: true }));
    return [...raw, ...made.map((line) => ({ ...line, values: smoothed(line.values, smooth) }))];
  }, [one.data, two.data, first, second, smooth]);
  const error = one.error ?? two.error;
  if (error && lines.length === 0) return <Problem error={error} retry={() => void one.refetch()} />;
  return <Chart title={metric.name} lines={lines} onZoom={zoom} />;
}
