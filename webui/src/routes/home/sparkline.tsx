/** How the metric of a search went, for its best trial: a line in a row, without axes. */

import { span } from "../../charts/lines";
import { shareBetween } from "../../charts/units";
import { manySeriesQuery } from "../../services/comparing";
import type { Experiment } from "../../services/experiments";
import { useLive } from "../../services/live";

const [WIDTH, HEIGHT] = [140, 26];

export function Sparkline({ experiment }: { experiment: Experiment }) {
  const trial = experiment.bestTrialId ?? undefined;
  const metric = experiment.searcherMetric ?? "";
  const ids = trial === undefined ? [] : [trial];
  const line = useLive(manySeriesQuery(ids, "validation", metric)).data?.[0];
  const path = line && trial !== undefined ? pathOf(line.steps, line.values) : "";
  return (
    <svg
      role="img"
      aria-label={path ? `${metric} of its best trial over its steps` : "No validation yet"}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      className="hidden h-[26px] w-[140px] lg:block"
    >
      {path && <path d={path} fill="none" stroke="var(--run)" strokeWidth={1.5} vectorEffect="non-scaling-stroke" />}
    </svg>
  );
}

/** Through all that are numbers. Pure. */
export function pathOf(x: readonly number[], y: readonly (number | null)[]): string {
  const [low, high] = span([y]) ?? [0, 0];
  const [first, last] = [x[0] ?? 0, x.at(-1) ?? 0];
  const across = (at: number) => (last > first ? ((at - first) / (last - first)) * (WIDTH - 2) + 1 : WIDTH / 2);
  const up = (value: number) => (high > low ? HEIGHT - 2 - shareBetween(low, high, value) * (HEIGHT - 4) : HEIGHT / 2);
  let pen = "M";
  let path = "";
  x.forEach((at, place) => {
    const value = y[place];
    if (value === null || value === undefined) {
      pen = "M";
      return;
    }
    path += `${pen}${across(at).toFixed(1)} ${up(value).toFixed(1)}`;
    pen = "L";
  });
  return path;
}
