/** Columns of a table: which there are, and which somebody sees, in what order and how wide. */

import { queryOptions } from "@tanstack/react-query";
import { own } from "../own";
import { answered, api } from "./client";
import type { Experiment } from "./experiments";
import type { components } from "./schema";

export type ProjectColumn = components["schemas"]["ProjectColumn"];

/** One that is shown. */
export interface Placed {
  id: string;
  /** Pixels. */
  width: number;
  pinned: boolean;
  /** Its cells are coloured by where they lie in the project. */
  heat?: boolean;
}

/** Which table: of experiments, or of all of their trials. */
export type Detail = "experiments" | "trials";

export const MIN_WIDTH = 48;
export const MAX_WIDTH = 800;
/** More at once no browser draws well, and nobody reads. */
export const MAX_SHOWN = 30;

/** All that a project has; empty where there is no project. */
export function columnsQuery(projectId: number | undefined, detail: Detail) {
  return queryOptions({
    queryKey: ["columns", projectId ?? 0, detail],
    queryFn: async ({ signal }): Promise<ProjectColumn[]> => {
      if (projectId === undefined) return [];
      const tableType = detail === "trials" ? ("TABLE_TYPE_RUN" as const) : ("TABLE_TYPE_EXPERIMENT" as const);
      const params = { path: { projectId }, query: { tableType } };
      return (await answered(api.GET("/api/v1/projects/{projectId}/columns", { params, signal }))).columns;
    },
    staleTime: 30_000,
  });
}

/** Between which values the metrics of a project lie, by column; empty where there is no project. */
export function rangesQuery(projectId: number | undefined) {
  return queryOptions({
    queryKey: ["metric-ranges", projectId ?? 0],
    queryFn: async ({ signal }): Promise<Ranges> => {
      if (projectId === undefined) return new Map();
      const params = { path: { projectId } };
      const asked = api.GET("/api/v1/projects/{projectId}/experiments/metric-ranges", { params, signal });
      return new Map((await answered(asked)).ranges.map(({ metricsName, min, max }) => [metricsName, [min, max]]));
    },
    staleTime: 60_000,
  });
}

export type Ranges = ReadonlyMap<string, readonly [number, number]>;

/** From 0 at the least of a project to 1; undefined: it has no place there. */
export function heatOf(value: unknown, range: readonly [number, number] | undefined): number | undefined {
  if (typeof value !== "number" || !Number.isFinite(value) || !range || range[0] === range[1]) return undefined;
  return Math.min(1, Math.max(0, (value - range[0]) / (range[1] - range[0])));
}

/** `name@260!~`: its width, that it is pinned, and that it is a heat map. */
export function written(placed: Placed): string {
  return `${placed.id}@${placed.width}${placed.pinned ? "!" : ""}${placed.heat ? "~" : ""}`;
}

/** What is written in an address or was kept; what cannot be read is left out. */
export function placedOf(texts: readonly unknown[]): Placed[] {
  const placed: Placed[] = [];
  for (const text of texts) {
    const match = typeof text === "string" ? /^(.{1,1000})@(\d{1,4})(!?)(~?)$/s.exec(text) : null;
    const [, id, width, pin, heat] = match ?? [];
    if (id === undefined || placed.some((each) => each.id === id)) continue;
    placed.push({ id, width: bounded(Number(width)), pinned: pin === "!", ...(heat && { heat: true }) });
  }
  return inOrder(placed.slice(0, MAX_SHOWN));
}

export function bounded(width: number): number {
  return Math.round(Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, width)));
}

/** What is pinned comes first. */
export function inOrder(placed: readonly Placed[]): Placed[] {
  return [...placed.filter((each) => each.pinned), ...placed.filter((each) => !each.pinned)];
}

/** One column in the place of another; it is pinned as that one is. */
export function moved(placed: readonly Placed[], id: string, to: string): Placed[] {
  const from = placed.findIndex((each) => each.id === id);
  const target = placed.findIndex((each) => each.id === to);
  const [column, other] = [placed[from], placed[target]];
  if (!column || !other || from === target) return [...placed];
  const rest = placed.filter((each) => each.id !== id);
  return inOrder(rest.toSpliced(target, 0, { ...column, pinned: other.pinned }));
}

const SUMMARIES: Record<string, string> = { training: "avg_metrics", validation: "validation_metrics" };

/** What stands in a column of metrics, `group.name.qualifier`, by the summaries of a trial. */
export function metricOf(summaries: unknown, column: string): unknown {
  const [group = ""] = column.split(".", 1);
  const end = column.lastIndexOf(".");
  const groups = summaries as Record<string, Record<string, Record<string, unknown>>> | null | undefined;
  const metrics = own(groups ?? {}, own(SUMMARIES, group) ?? group) ?? {};
  return own(own(metrics, column.slice(group.length + 1, end)) ?? {}, column.slice(end + 1));
}

/** What stands below a path with dots, without its first part. */
export function below(node: unknown, column: string): unknown {
  let found = node;
  for (const part of column.split(".").slice(1)) {
    found = found !== null && typeof found === "object" ? own(found as Record<string, unknown>, part) : undefined;
  }
  return found;
}

/** What stands in a column of hyperparameters, `hp.name`: a constant, or between what it is searched. */
export function hyperparameterOf(row: Experiment, column: string): unknown {
  const node = below(row.hyperparameters, column);
  if (node === null || typeof node !== "object") return node;
  const { type, val, vals, minval, maxval, base = 10 } = node as Record<string, unknown>;
  if (type === "const") return val;
  if (type === "categorical" && Array.isArray(vals)) return vals.map(textOf).join(", ");
  if (type === "log") return `${Number(base) ** Number(minval)} … ${Number(base) ** Number(maxval)}`;
  return minval === undefined ? undefined : `${minval} … ${maxval}`;
}

/** As text, whatever it is. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
