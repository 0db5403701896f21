/**
 * How the charts of a project are laid out, kept for a person: which metrics come first, which are hidden, their order,
 * how large they are, and between which values; on the pages of trials and of comparisons alike.
 */

import type { QueryClient } from "@tanstack/react-query";
import { keepSetting, read, type Settings } from "./settings";

export const SIZES = ["small", "medium", "large"] as const;
export type Size = (typeof SIZES)[number];

/** Between which values a chart is drawn; an end that is not said is that of the data. */
export interface Range {
  low?: number;
  high?: number;
}

export interface Layout {
  size?: Size;
  /** By names of metrics, the first one first. */
  pinned: string[];
  hidden: string[];
  /** Of those that were moved by hand. */
  order: string[];
  ranges: Record<string, Range>;
  /** What holds where the address says nothing else. */
  x?: "time";
  log?: boolean;
  smooth?: number;
}

export const PLAIN: Layout = { pinned: [], hidden: [], order: [], ranges: {} };
/** Of each list: what a project has beyond is laid out as it comes. */
const MAX_NAMES = 500;
const LAYOUTS = "charts/layouts";

function keyOf(projectId: number | undefined): string {
  return projectId === undefined ? "all" : String(projectId);
}

export function layoutOf(settings: Settings, projectId: number | undefined): Layout {
  const kept = read(settings[`${LAYOUTS}\n${keyOf(projectId)}`]);
  return kept && typeof kept === "object" ? readLayout(kept as Record<string, unknown>) : PLAIN;
}

/** What was kept, as far as it can be read. */
export function readLayout(kept: Record<string, unknown>): Layout {
  const names = (value: unknown) =>
    Array.isArray(value) ? value.filter((each): each is string => typeof each === "string").slice(0, MAX_NAMES) : [];
  const ranges: [string, Range][] = [];
  for (const [name, range] of Object.entries((kept.ranges ?? {}) as Record<string, Range>)) {
    const ends = (["low", "high"] as const).filter((end) => Number.isFinite(range?.[end]));
    if (ends.length > 0) ranges.push([name, Object.fromEntries(ends.map((end) => [end, range[end]]))]);
  }
  return {
    size: SIZES.find((size) => size === kept.size),
    pinned: names(kept.pinned),
    hidden: names(kept.hidden),
    order: names(kept.order),
    ranges: Object.fromEntries(ranges),
    ...(kept.x === "time" && { x: "time" as const }),
    ...(kept.log === true && { log: true }),
    ...(typeof kept.smooth === "number" && kept.smooth > 0 && kept.smooth < 1 && { smooth: kept.smooth }),
  };
}

/** One that says nothing is none. */
export function keepLayout(client: QueryClient, projectId: number | undefined, layout: Layout): Promise<void> {
  const { pinned, hidden, order, ranges, ...rest } = layout;
  const says = [pinned, hidden, order, Object.keys(ranges)].some((each) => each.length > 0);
  const plain = !says && Object.values(rest).every((value) => value === undefined);
  return keepSetting(client, LAYOUTS, keyOf(projectId), plain ? "" : JSON.stringify(layout));
}

/** Charts in their order: pinned ones first, then those that were moved by hand, then as they come. */
export function arranged<M extends { name: string }>(metrics: readonly M[], layout: Layout): M[] {
  const [pins, moved] = [rankOf(layout.pinned), rankOf(layout.order)];
  const first = (name: string) => pins.get(name) ?? Number.POSITIVE_INFINITY;
  const then = (name: string) => moved.get(name) ?? Number.POSITIVE_INFINITY;
  const compared = (a: number, b: number) => (a === b ? 0 : a - b);
  return metrics
    .map((metric, place) => ({ metric, place }))
    .sort(
      (a, b) =>
        compared(first(a.metric.name), first(b.metric.name)) ||
        compared(then(a.metric.name), then(b.metric.name)) ||
        a.place - b.place,
    )
    .map(({ metric }) => metric);
}

function rankOf(names: readonly string[]): Map<string, number> {
  return new Map(names.map((name, place) => [name, place]));
}

/** One chart a place earlier, or later, among those that are shown. */
export function stepped(layout: Layout, shown: readonly string[], name: string, step: 1 | -1): Layout {
  const names = [...new Set(shown)];
  const from = names.indexOf(name);
  const to = from + step;
  const other = names[to];
  if (from < 0 || other === undefined) return layout;
  const order = names.toSpliced(from, 1).toSpliced(to, 0, name);
  const pinned = layout.pinned.includes(name) && layout.pinned.includes(other);
  return pinned
    ? { ...layout, pinned: order.filter((each) => layout.pinned.includes(each)) }
    : { ...layout, order: order.slice(0, MAX_NAMES) };
}

export function toggledIn(names: readonly string[], name: string): string[] {
  return names.includes(name) ? names.filter((each) => each !== name) : [...names, name].slice(-MAX_NAMES);
}
