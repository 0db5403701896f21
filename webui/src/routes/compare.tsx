/** Trials side by side: a legend, a chart for each metric, and what they were made with. All of it stands in the address. */

import { getRouteApi, Link, useNavigate, useRouter } from "@tanstack/react-router";
import { useDeferredValue, useMemo, useState } from "react";
import { Curves } from "../charts/Curves";
import type { TrialLine } from "../charts/lines";
import { looksOf } from "../charts/palette";
import { Diff } from "../compare/Diff";
import { Legend } from "../compare/Legend";
import { count } from "../format";
import { useCommands } from "../keys/commands";
import type { CompareSearch, Numbers } from "../router";
import {
  type ComparedTrial,
  comparedQuery,
  MAX_COMPARED,
  manySeriesQuery,
  type TrialSeries,
} from "../services/comparing";
import { useLive } from "../services/live";
import { hasEnded } from "../services/states";
import { useShownTheme } from "../theme";
import { FIELD } from "../ui/Button";
import { Empty, Loading, Problem } from "../ui/notices";
import { Page } from "../ui/Page";
import { SearchField } from "../ui/SearchField";

const route = getRouteApi("/shell/compare");

/** Numbers of trials as they stand in an address. */
export function idsOf(text: Numbers | undefined): number[] {
  const ids = String(text ?? "")
    .split(",")
    .filter((part) => /^\d{1,15}$/.test(part));
  return [...new Set(ids.map(Number))];
}

export function ComparePage() {
  const search = route.useSearch();
  const all = idsOf(search.trials);
  const ids = useMemo(() => idsOf(search.trials).slice(0, MAX_COMPARED), [search.trials]);
  const compared = useLive(comparedQuery(ids), (data) => data.every((trial) => hasEnded(trial.state)));
  const router = useRouter();
  useCommands([{ name: "leave", title: "Go back", run: () => router.history.back() }]);
  if (ids.length === 0) {
    return (
      <Page title="Compare" name="Compare">
        <Empty title="Nothing is compared yet">
          Select{" "}
          <Link to="/experiments" className="text-accent underline">
            experiments
          </Link>{" "}
          or trials of one by their boxes or by x, and press c.
        </Empty>
      </Page>
    );
  }
  const trials = compared.data;
  const name = `Compare ${ids.length} ${ids.length === 1 ? "trial" : "trials"}`;
  return (
    <Page title={name} name={name}>
      {compared.error && !trials ? (
        <Problem error={compared.error} retry={() => void compared.refetch()} />
      ) : trials === undefined ? (
        <Loading what="the trials" />
      ) : (
        <>
          {all.length > ids.length && (
            <p className="text-dim">
              The first {MAX_COMPARED} of {count(all.length)}: more lines nobody tells apart.
            </p>
          )}
          {trials.length < ids.length && !compared.isPlaceholderData && (
            <p className="text-dim">{ids.length - trials.length} of them cannot be found: deleted, maybe.</p>
          )}
          <Compared trials={trials} search={search} />
        </>
      )}
    </Page>
  );
}

function Compared({ trials, search }: { trials: ComparedTrial[]; search: CompareSearch }) {
  const navigate = useNavigate();
  const theme = useShownTheme();
  const change = (changed: Partial<CompareSearch>) =>
    void navigate({ to: ".", search: (former: CompareSearch) => ({ ...former, ...changed }), replace: true } as never);
  const ids = useMemo(() => trials.map((trial) => trial.id), [trials]);
  const looks = useMemo(() => looksOf(ids, theme), [ids, theme]);
  const hidden = useMemo(() => new Set(idsOf(search.hide)), [search.hide]);
  const hide = (trial: number, off: boolean) => {
    const now = new Set(hidden);
    if (off) now.add(trial);
    else now.delete(trial);
    change({ hide: [...now].join(",") || undefined });
  };
  return (
    <>
      <Legend
        trials={trials}
        looks={looks}
        hidden={hidden}
        onHide={hide}
        onRemove={(trial) => change({ trials: ids.filter((id) => id !== trial).join(",") })}
      />
      <Tabs tab={search.tab} />
      {search.tab === "diff" ? (
        <Diff
          trials={trials}
          looks={looks}
          all={search.all ?? false}
          onAll={(all) => change({ all: all || undefined })}
        />
      ) : (
        <>
          <Controls search={search} change={change} />
          <Metrics trials={trials} looks={looks} hidden={hidden} search={search} />
        </>
      )}
    </>
  );
}

function Tabs({ tab }: { tab?: "diff" }) {
  const look = "inline-flex min-h-8 items-center whitespace-nowrap border-b-2 px-2";
  return (
    <nav aria-label="Parts of the comparison" className="-mb-2 flex shrink-0 gap-x-2 border-line border-b">
      {([undefined, "diff"] as const).map((part) => (
        <Link
          key={part ?? "metrics"}
          to="/compare"
          search={(former) => ({ ...former, tab: part }) as CompareSearch}
          aria-current={tab === part ? "page" : undefined}
          className={`${look} ${tab === part ? "border-accent font-medium" : "border-transparent text-dim"}`}
        >
          {part ? "Differences" : "Metrics"}
        </Link>
      ))}
    </nav>
  );
}

function Controls({ search, change }: { search: CompareSearch; change: (changed: Partial<CompareSearch>) => void }) {
  return (
    <div className="-mb-2 flex flex-wrap items-center gap-x-4 gap-y-2">
      <SearchField
        value={search.q ?? ""}
        label="Part of a metric's name"
        onChange={(q) => change({ q: q || undefined })}
      />
      <select
        aria-label="Horizontal axis"
        className={FIELD}
        value={search.x ?? "batches"}
        onChange={(event) => change({ x: event.target.value === "time" ? "time" : undefined })}
      >
        <option value="batches">By batches</option>
        <option value="time">By time</option>
      </select>
      <label className="flex min-h-7 items-center gap-1.5">
        <input
          type="checkbox"
          className="size-4 accent-(--accent)"
          checked={search.log ?? false}
          onChange={(event) => change({ log: event.target.checked || undefined })}
        />
        Logarithmic
      </label>
      <label className="flex min-h-7 items-center gap-2">
        Smoothing
        <input
          type="range"
          min={0}
          max={0.99}
          step={0.01}
          value={search.smooth ?? 0}
          aria-valuetext={search.smooth ? String(search.smooth) : "off"}
          className="w-32 accent-(--accent)"
          onChange={(event) => change({ smooth: Number(event.target.value) || undefined })}
        />
        <span aria-hidden="true" className="w-8 text-dim">
          {search.smooth ?? "off"}
        </span>
      </label>
    </div>
  );
}

interface Metric {
  group: string;
  name: string;
  /** Trials that have reported it. */
  of: number[];
}

const GROUPS: Record<string, string> = { avg_metrics: "training", validation_metrics: "validation" };
const SYSTEM = new Set(["gpu", "cpu", "memory", "disk", "network"]);

/** What several of the trials have reported comes first; what the search is about before all. */
export function metricsOf(trials: readonly ComparedTrial[]): Metric[] {
  const metrics = new Map<string, Metric>();
  for (const { id, summaryMetrics } of trials) {
    for (const [sent, names] of Object.entries(
      (summaryMetrics ?? {}) as Record<string, Record<string, { count?: number }>>,
    )) {
      const group = GROUPS[sent] ?? sent;
      if (SYSTEM.has(group)) continue;
      for (const [name, { count: numbers }] of Object.entries(names)) {
        if (numbers === undefined) continue;
        const metric = metrics.get(`${group}\n${name}`) ?? { group, name, of: [] };
        metric.of.push(id);
        metrics.set(`${group}\n${name}`, metric);
      }
    }
  }
  const objectives = new Set(trials.map((trial) => trial.experiment.searcherMetric));
  const rank = ({ group, name, of }: Metric) =>
    (of.length > 1 || trials.length === 1 ? 4 : 0) + (objectives.has(name) ? 2 : 0) + (group === "validation" ? 1 : 0);
  return [...metrics.values()].sort((a, b) => rank(b) - rank(a) || a.name.localeCompare(b.name));
}

interface MetricsProps {
  trials: ComparedTrial[];
  looks: ReturnType<typeof looksOf>;
  hidden: ReadonlySet<number>;
  search: CompareSearch;
}

function Metrics({ trials, looks, hidden, search }: MetricsProps) {
  const metrics = useMemo(() => metricsOf(trials), [trials]);
  const part = search.q?.toLowerCase() ?? "";
  const shown = metrics.filter(({ group, name }) => `${group} ${name}`.toLowerCase().includes(part));
  if (metrics.length === 0) return <Empty title="None of them has reported a metric yet" />;
  if (shown.length === 0) return <Empty title={`No metric is called ${search.q}`} />;
  return (
    <>
      <p className="-mb-2 text-dim" aria-live="polite">
        {count(shown.length)} {shown.length === 1 ? "metric" : "metrics"}
      </p>
      <div className="grid grid-cols-1 gap-3 lg:grid-cols-2">
        {shown.map((metric) => (
          <MetricChart
            key={`${metric.group} ${metric.name}`}
            metric={metric}
            looks={looks}
            hidden={hidden}
            search={search}
            ended={trials.every((trial) => hasEnded(trial.state))}
          />
        ))}
      </div>
    </>
  );
}

function MetricChart(props: {
  metric: Metric;
  looks: ReturnType<typeof looksOf>;
  hidden: ReadonlySet<number>;
  search: CompareSearch;
  ended: boolean;
}) {
  const { metric, looks, hidden, search, ended } = props;
  const [inView, setInView] = useState(false);
  const series = useLive(manySeriesQuery(metric.of, metric.group, metric.name, inView), () => ended);
  const axis = search.x ?? "batches";
  const lines = useMemo(
    () => (series.data ?? []).filter((line) => !hidden.has(line.trialId)).map((line) => lineOf(line, axis)),
    [series.data, hidden, axis],
  );
  const smoothing = useDeferredValue(search.smooth ?? 0);
  return (
    <Curves
      title={`${metric.group} ${metric.name}`}
      lines={lines}
      looks={looks}
      axis={axis}
      log={search.log}
      smoothing={smoothing}
      onView={setInView}
      waiting={series.data ? "Its lines are hidden." : series.error ? String(series.error.message) : "Loading…"}
    />
  );
}

/** Against time: seconds since its first report. */
export function lineOf({ trialId, steps, times, values }: TrialSeries, axis: "batches" | "time"): TrialLine {
  if (axis === "batches") return { trial: trialId, x: steps, y: values };
  const begin = times.reduce((first, time) => Math.min(first, time), Number.POSITIVE_INFINITY);
  const order = times.map((_, place) => place).sort((a, b) => (times[a] as number) - (times[b] as number));
  return {
    trial: trialId,
    x: order.map((place) => ((times[place] as number) - begin) / 1e6),
    y: order.map((place) => values[place] ?? null),
  };
}
