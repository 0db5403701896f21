/** Trials side by side: a legend, a chart for each metric, and what they were made with. All of it stands in the address. */

import { getRouteApi, Link, useNavigate, useRouter } from "@tanstack/react-router";
import { type ReactNode, useDeferredValue, useMemo, useState } from "react";
import type { CompareSearch, Numbers } from "../addresses";
import { Curves } from "../charts/Curves";
import { type BandOf, grouped, type TrialGroup, together } from "../charts/groups";
import { ChartMenu, COLUMNS, HEIGHTS, type Laid, LayoutMenu, type Manner, useLayout } from "../charts/layout";
import { smoothed, type TrialLine } from "../charts/lines";
import { MetricFinder } from "../charts/MetricFinder";
import { named } from "../charts/named";
import { type Look, looksOf } from "../charts/palette";
import { Diff } from "../compare/Diff";
import { leaves, settings } from "../compare/differences";
import { Grouping, Groups, groupName } from "../compare/Grouping";
import { Legend } from "../compare/Legend";
import { count } from "../format";
import { useCommands } from "../keys/commands";
import { own } from "../own";
import {
  type ComparedTrial,
  comparedQuery,
  MAX_COMPARED,
  manySeriesQuery,
  type TrialSeries,
} from "../services/comparing";
import { arranged } from "../services/layouts";
import { useLive } from "../services/live";
import { hasEnded } from "../services/states";
import { useShownTheme } from "../theme";
import { Button, FIELD } from "../ui/Button";
import { Empty, Loading, Problem } from "../ui/notices";
import { Page } from "../ui/Page";

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
        <Empty title="Nothing to compare yet">
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
              The first {MAX_COMPARED} of {count(all.length)}: more lines could not be told apart.
            </p>
          )}
          {trials.length < ids.length && !compared.isPlaceholderData && (
            <p className="text-dim">
              {ids.length - trials.length} of them cannot be found; they may have been deleted.
            </p>
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
  const tried = useMemo(
    () => trials.map(({ id, hyperparameters }) => ({ id, settings: leaves(hyperparameters) })),
    [trials],
  );
  const varying = useMemo(
    () => settings(tried.map((each) => each.settings)).flatMap(({ name, differs }) => (differs ? name : [])),
    [tried],
  );
  const { by } = search;
  const groups = useMemo(() => by && grouped(tried, by), [tried, by]);
  const looks = useMemo(() => (groups ? looksOfGroups(groups, theme) : looksOf(ids, theme)), [groups, ids, theme]);
  const laid = useLayout(projectOf(trials));
  const manner = mannerOf(search, laid);
  const hidden = useMemo(() => new Set(idsOf(search.hide)), [search.hide]);
  const hide = (trial: number, off: boolean) => {
    const now = new Set(hidden);
    if (off) now.add(trial);
    else now.delete(trial);
    change({ hide: [...now].join(",") || undefined });
  };
  return (
    <>
      {groups && by && <Groups groups={groups} by={by} trials={trials} looks={looks} />}
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
          <Controls search={search} change={change} laid={laid} manner={manner} trials={trials}>
            <Grouping
              varying={varying}
              by={by}
              band={search.band ?? "std"}
              onBy={(names) => change({ by: names, band: names && search.band })}
              onBand={(band) => change({ band: band === "range" ? "range" : undefined })}
            />
          </Controls>
          {laid.ready && (
            <Metrics
              trials={trials}
              looks={looks}
              hidden={hidden}
              search={search}
              laid={laid}
              manner={manner}
              groups={groups}
            />
          )}
        </>
      )}
    </>
  );
}

/** All trials of a group are drawn as it is. */
function looksOfGroups(groups: readonly TrialGroup[], theme: "light" | "dark"): Map<number, Look> {
  const looks = looksOf(
    groups.map((group) => group.id),
    theme,
  );
  const all = new Map(looks);
  for (const { id, trials } of groups) for (const trial of trials) all.set(trial, looks.get(id) as Look);
  return all;
}

/** The project whose layout holds: that of all of them. */
function projectOf(trials: readonly ComparedTrial[]): number | undefined {
  const [first, ...others] = new Set(trials.map((trial) => trial.projectId));
  return others.length === 0 ? first : undefined;
}

/** What the address says, or else what is kept for the project. */
function mannerOf(search: CompareSearch, { layout }: Laid): Manner {
  return {
    x: (search.x ?? layout.x) === "time" ? "time" : undefined,
    log: (search.log ?? layout.log) || undefined,
    smooth: (search.smooth ?? layout.smooth) || undefined,
  };
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
          // Esc and Back lead to where one came from, whichever was looked at.
          replace
          aria-current={tab === part ? "page" : undefined}
          className={`${look} ${tab === part ? "border-accent font-medium" : "border-transparent text-dim"}`}
        >
          {part ? "Differences" : "Metrics"}
        </Link>
      ))}
    </nav>
  );
}

function Controls(props: {
  search: CompareSearch;
  change: (changed: Partial<CompareSearch>) => void;
  laid: Laid;
  manner: Manner;
  trials: ComparedTrial[];
  children: ReactNode;
}) {
  const { search, change, laid, manner, trials } = props;
  const { layout } = laid;
  const smoothing = manner.smooth ?? 0;
  const reported = new Set(metricsOf(trials).map((metric) => metric.name));
  return (
    <div className="-mb-2 flex flex-wrap items-center gap-x-4 gap-y-2">
      <MetricFinder
        text={search.q ?? ""}
        isPattern={search.re ?? false}
        onChange={({ text = search.q, isPattern = search.re }) =>
          change({ q: text || undefined, re: isPattern || undefined })
        }
      />
      <select
        aria-label="Horizontal axis"
        className={FIELD}
        value={manner.x ?? "steps"}
        onChange={(event) => {
          const x = event.target.value === "time" ? "time" : "steps";
          change({ x: x === (layout.x ?? "steps") ? undefined : x });
        }}
      >
        <option value="steps">By steps</option>
        <option value="time">By time</option>
      </select>
      <label className="flex min-h-7 items-center gap-1.5">
        <input
          type="checkbox"
          className="size-4 accent-(--accent)"
          checked={manner.log ?? false}
          onChange={({ target }) =>
            change({ log: target.checked === (layout.log ?? false) ? undefined : target.checked })
          }
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
          value={smoothing}
          aria-valuetext={smoothing ? String(smoothing) : "off"}
          className="w-32 accent-(--accent)"
          onChange={(event) => {
            const smooth = Number(event.target.value);
            change({ smooth: smooth === (layout.smooth ?? 0) ? undefined : smooth });
          }}
        />
        <span aria-hidden="true" className="w-8 text-dim">
          {smoothing || "off"}
        </span>
      </label>
      {props.children}
      <LayoutMenu {...laid} now={manner} hidden={layout.hidden.filter((name) => reported.has(name))} />
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

/** Charts that are there at first, drawn where they are in view; more come when asked for. */
const CHARTS = 60;

interface MetricsProps {
  trials: ComparedTrial[];
  looks: ReadonlyMap<number, Look>;
  hidden: ReadonlySet<number>;
  search: CompareSearch;
  laid: Laid;
  manner: Manner;
  groups?: TrialGroup[];
}

function Metrics(props: MetricsProps) {
  const { trials, search, laid } = props;
  const [most, setMost] = useState(CHARTS);
  const { layout } = laid;
  const metrics = useMemo(() => metricsOf(trials), [trials]);
  const matches = named(search.q ?? "", search.re ?? false) ?? (() => true);
  const found = metrics.filter(({ group, name }) => matches(`${group} ${name}`) && !layout.hidden.includes(name));
  const shown = arranged(found, layout);
  const names = shown.map((metric) => metric.name);
  const ended = trials.every((trial) => hasEnded(trial.state));
  if (metrics.length === 0) return <Empty title="None of them has reported a metric yet" />;
  if (shown.length === 0) return <Empty title={search.q ? `No metric matches ${search.q}` : "All charts are hidden"} />;
  return (
    <>
      <p className="-mb-2 text-dim" aria-live="polite">
        {count(shown.length)} {shown.length === 1 ? "metric" : "metrics"}
      </p>
      <div className={`grid gap-3 ${layout.size ? COLUMNS[layout.size] : "grid-cols-1 lg:grid-cols-2"}`}>
        {shown.slice(0, most).map((metric) => (
          <MetricChart key={`${metric.group} ${metric.name}`} {...props} metric={metric} names={names} ended={ended} />
        ))}
      </div>
      {shown.length > most && (
        <Button className="self-start" onClick={() => setMost(most + CHARTS)}>
          Show more of the {count(shown.length)} metrics
        </Button>
      )}
    </>
  );
}

interface MetricChartProps extends MetricsProps {
  metric: Metric;
  /** Of all charts in their order. */
  names: string[];
  ended: boolean;
}

function MetricChart(props: MetricChartProps) {
  const { metric, looks, hidden, search, laid, manner, groups, ended } = props;
  const [inView, setInView] = useState(false);
  const series = useLive(manySeriesQuery(metric.of, metric.group, metric.name, inView), () => ended);
  const axis = manner.x ?? "steps";
  const lines = useMemo(
    () => (series.data ?? []).filter((line) => !hidden.has(line.trialId)).map((line) => lineOf(line, axis)),
    [series.data, hidden, axis],
  );
  const smoothing = useDeferredValue(manner.smooth ?? 0);
  const band = search.band ?? "std";
  const means = useMemo(() => groups && meansOf(groups, lines, smoothing, band), [groups, lines, smoothing, band]);
  const names = new Map(groups?.map((group) => [group.id, groupName(group, search.by ?? [])]));
  const title = `${metric.group} ${metric.name}`;
  return (
    <Curves
      title={title}
      lines={means?.lines ?? lines}
      bands={means?.bands}
      looks={looks}
      axis={axis}
      log={manner.log}
      // Of a group each trial is smoothed, before the mean.
      smoothing={means ? 0 : smoothing}
      onView={setInView}
      height={HEIGHTS[laid.layout.size ?? "medium"]}
      range={own(laid.layout.ranges, metric.name)}
      {...(means && { nameOf: (id: number) => names.get(id) ?? "", noun: "Group" })}
      waiting={series.data ? "Its lines are hidden." : series.error ? String(series.error.message) : "Loading…"}
      aside={<ChartMenu name={metric.name} title={title} shown={props.names} {...laid} />}
    />
  );
}

/** A line and a band for each group of which some trial has the metric. */
function meansOf(groups: readonly TrialGroup[], lines: readonly TrialLine[], smoothing: number, of: BandOf) {
  const made = groups.flatMap(({ id, trials }) => {
    const own = lines
      .filter((line) => trials.includes(line.trial))
      .map((line) => ({ ...line, y: smoothed(line.y, smoothing) }));
    return own.length > 0 ? [together(id, own, of)] : [];
  });
  return { lines: made.map((each) => each.line), bands: made.map((each) => each.band) };
}

/** Against time: seconds since its first report. */
export function lineOf({ trialId, steps, times, values }: TrialSeries, axis: "steps" | "time"): TrialLine {
  if (axis === "steps") return { trial: trialId, x: steps, y: values };
  const begin = times.reduce((first, time) => Math.min(first, time), Number.POSITIVE_INFINITY);
  const order = times.map((_, place) => place).sort((a, b) => (times[a] as number) - (times[b] as number));
  return {
    trial: trialId,
    x: order.map((place) => ((times[place] as number) - begin) / 1e6),
    y: order.map((place) => values[place] ?? null),
  };
}
