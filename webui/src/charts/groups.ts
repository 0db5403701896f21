/** Trials that share what they are grouped by, as one line with a band: its mean over seeds and how far they spread. Pure. */

import type { TrialLine } from "./lines";

/** `std`: one standard deviation to both sides; `range`: from the least to the greatest. */
export type BandOf = "std" | "range";

export interface Band {
  /** Whose line it lies around. */
  trial: number;
  x: number[];
  low: (number | null)[];
  high: (number | null)[];
}

/** Points of a line of means at most: as many as its trials have together would be drawn on top of each other. */
const MAX_POINTS = 1200;

/** The value of a line at `x`, between its points as it is drawn; undefined before its first and after its last, and in gaps. */
function valueAt({ x, y }: TrialLine, at: number, from: { place: number }): number | undefined {
  while (from.place < x.length - 1 && (x[from.place + 1] as number) <= at) from.place += 1;
  const { place } = from;
  const [before, after] = [x[place], x[place + 1]];
  const [low, high] = [y[place], y[place + 1]];
  if (before === undefined || at < before || low === null || low === undefined) return undefined;
  if (at === before) return low;
  if (after === undefined || high === null || high === undefined) return undefined;
  const share = (at - before) / (after - before);
  return low * (1 - share) + high * share;
}

export interface Spread {
  count: number;
  mean: number;
  /** Of a sample; 0 of a single value. */
  std: number;
  least: number;
  greatest: number;
}

export function spreadOf(values: readonly number[]): Spread | undefined {
  const [first] = values;
  if (first === undefined) return undefined;
  let [least, greatest] = [first, first];
  for (const value of values) {
    least = Math.min(least, value);
    greatest = Math.max(greatest, value);
  }
  // Sums of values near 1e308, and squares beyond 1e154 or below 1e-162, are no numbers any more.
  const scale = scaleOf(Math.max(Math.abs(least), Math.abs(greatest)));
  const mean = values.reduce((total, value) => total + value / scale, 0) / values.length;
  const squares = values.reduce((total, value) => total + (value / scale - mean) ** 2, 0);
  return {
    count: values.length,
    mean: mean * scale,
    std: values.length > 1 ? Math.sqrt(squares / (values.length - 1)) * scale : 0,
    least,
    greatest,
  };
}

/** A power of two, by which nothing is rounded. */
function scaleOf(most: number): number {
  return most > 0 && Number.isFinite(most) ? 2 ** Math.floor(Math.log2(most)) : 1;
}

/** A chart has a place for every number, and none beyond. */
function drawable(value: number): number {
  return Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, value));
}

/** The mean of some lines at every place where one of them has a point, over those that have a value there. */
export function together(trial: number, lines: readonly TrialLine[], of: BandOf): { line: TrialLine; band: Band } {
  const every = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b);
  const step = Math.max(1, Math.ceil(every.length / MAX_POINTS));
  const x = every.filter((_, place) => place % step === 0 || place === every.length - 1);
  const places = lines.map(() => ({ place: 0 }));
  const band: Band = { trial, x, low: [], high: [] };
  const y = x.map((at) => {
    const values = lines.flatMap((line, place) => valueAt(line, at, places[place] as { place: number }) ?? []);
    const spread = spreadOf(values);
    band.low.push(spread ? (of === "range" ? spread.least : drawable(spread.mean - spread.std)) : null);
    band.high.push(spread ? (of === "range" ? spread.greatest : drawable(spread.mean + spread.std)) : null);
    return spread ? spread.mean : null;
  });
  return { line: { trial, x, y }, band };
}

export interface TrialGroup {
  /** The first of its trials: it stands for all in colours and hovering. */
  id: number;
  trials: number[];
  /** Values of what they are grouped by, in that order. */
  values: (string | undefined)[];
}

/** Trials by the values of some of their settings, in the order of their first ones. */
export function grouped(
  trials: readonly { id: number; settings: ReadonlyMap<string, string> }[],
  by: readonly string[],
): TrialGroup[] {
  const groups = new Map<string, TrialGroup>();
  for (const { id, settings } of trials) {
    const values = by.map((name) => settings.get(name));
    const key = JSON.stringify(values);
    const group = groups.get(key);
    if (group) group.trials.push(id);
    else groups.set(key, { id, trials: [id], values });
  }
  return [...groups.values()];
}
