/** Columns of a table: which there are, and which somebody sees, in what order and how wide. */

import { queryOptions } from "@tanstack/react-query";
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
}

export const MIN_WIDTH = 48;
export const MAX_WIDTH = 800;
/** More at once no browser draws well, and nobody reads. */
export const MAX_SHOWN = 30;

/** All that a project has; empty where there is no project. */
export function columnsQuery(projectId: number | undefined) {
  return queryOptions({
    queryKey: ["columns", projectId ?? 0],
    queryFn: async ({ signal }): Promise<ProjectColumn[]> => {
      if (projectId === undefined) return [];
      const params = { path: { projectId } };
      return (await answered(api.GET("/api/v1/projects/{projectId}/columns", { params, signal }))).columns;
    },
    staleTime: 30_000,
  });
}

/** `name@260!`: its width, and that it is pinned. */
export function written(placed: Placed): string {
  return `${placed.id}@${placed.width}${placed.pinned ? "!" : ""}`;
}

/** What is written in an address or was kept; what cannot be read is left out. */
export function placedOf(texts: readonly unknown[]): Placed[] {
  const placed: Placed[] = [];
  for (const text of texts) {
    const match = typeof text === "string" ? /^(.{1,1000})@(\d{1,4})(!?)$/s.exec(text) : null;
    const [, id, width, pin] = match ?? [];
    if (id === undefined || placed.some((each) => each.id === id)) continue;
    placed.push({ id, width: bounded(Number(width)), pinned: pin === "!" });
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

/** What stands in a column of metrics, `group.name.qualifier`: that of the best trial. */
export function metricOf(row: Experiment, column: string): unknown {
  const [group = ""] = column.split(".", 1);
  const end = column.lastIndexOf(".");
  const groups = row.best?.summaryMetrics as Record<string, Record<string, Record<string, unknown>>> | undefined;
  return groups?.[SUMMARIES[group] ?? group]?.[column.slice(group.length + 1, end)]?.[column.slice(end + 1)];
}

/** What stands in a column of hyperparameters, `hp.name`: a constant, or between what it is searched. */
export function hyperparameterOf(row: Experiment, column: string): unknown {
  let node: unknown = row.config?.hyperparameters;
  for (const part of column.split(".").slice(1)) {
    node = node !== null && typeof node === "object" ? (node as Record<string, unknown>)[part] : undefined;
  }
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
