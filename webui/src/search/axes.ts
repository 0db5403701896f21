/** Axes of what trials tried, and where values lie on them. Pure. */

import { shareBetween } from "../charts/units";
import { own } from "../own";
import { type Brush, type Brushes, METRIC, type SearchedTrial } from "../services/searching";
import { visible } from "../visible";

export interface Axis {
  /** Of the hyperparameter; `METRIC`: the metric. */
  name: string;
  title: string;
  /** A range over more than two powers of ten, of numbers above zero. */
  log: boolean;
  low: number;
  high: number;
  /** Values that are no numbers, in order; then `low` and `high` are the places of the first and the last. */
  texts?: string[];
}

export type Value = number | string | undefined;

export function triedOf(trial: SearchedTrial, name: string): Value {
  const value = name === METRIC ? trial.metric : own(trial.hparams as Record<string, unknown>, name);
  if (value === null || value === undefined) return undefined;
  return typeof value === "number" ? value : String(value);
}

function axisOf(name: string, title: string, trials: readonly SearchedTrial[]): Axis | undefined {
  const values = trials.map((trial) => triedOf(trial, name)).filter((value) => value !== undefined);
  if (new Set(values).size < 2) return undefined;
  if (values.some((value) => typeof value === "string")) {
    const texts = [...new Set(values.map(String))].sort();
    return { name, title, log: false, low: 0, high: texts.length - 1, texts };
  }
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values as number[]) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return { name, title, log: low > 0 && high / low > 100, low, high };
}

/** Of what varies: the most important first, at most so many; the metric last. */
export function axesOf(
  trials: readonly SearchedTrial[],
  metric: string,
  order: readonly string[],
  most: number,
): Axis[] {
  const names = [...new Set(trials.flatMap((trial) => Object.keys(trial.hparams)))].sort();
  const rank = (name: string) => {
    const place = order.indexOf(name);
    return place < 0 ? order.length : place;
  };
  const axes = names
    .sort((a, b) => rank(a) - rank(b) || a.localeCompare(b))
    .flatMap((name) => axisOf(name, visible(name), trials) ?? [])
    .slice(0, most);
  return [...axes, ...[axisOf(METRIC, visible(metric), trials) ?? []].flat()];
}

/** As somebody arranged them: in the order of `order`, the rest after it; what is in `flipped` has the other scale. */
export function arrangedAxes(axes: readonly Axis[], order: readonly string[], flipped: readonly string[]): Axis[] {
  const rank = (axis: Axis) => {
    const place = order.indexOf(axis.name);
    return place < 0 ? order.length : place;
  };
  return axes
    .map((axis) => (flipped.includes(axis.name) && mayBeLog(axis) ? { ...axis, log: !axis.log } : axis))
    .sort((a, b) => rank(a) - rank(b));
}

/** Numbers above zero alone have a logarithm. */
export function mayBeLog(axis: Axis): boolean {
  return !axis.texts && axis.low > 0;
}

/** Names in their order, one of them in the place of another. */
export function placedBefore(names: readonly string[], name: string, target: string): string[] {
  const [from, to] = [names.indexOf(name), names.indexOf(target)];
  if (from < 0 || to < 0) return [...names];
  return names.toSpliced(from, 1).toSpliced(to, 0, name);
}

/** From 0 at its lower end to 1; undefined: it has no place there. */
export function shareOf(axis: Axis, value: Value): number | undefined {
  if (value === undefined) return undefined;
  const number = axis.texts ? axis.texts.indexOf(String(value)) : value;
  if (typeof number !== "number" || (axis.texts && number < 0)) return undefined;
  if (axis.high === axis.low) return 0.5;
  if (!axis.log) return shareBetween(axis.low, axis.high, number);
  return shareBetween(Math.log(axis.low), Math.log(axis.high), Math.log(number));
}

/** The value at a share of an axis of numbers. */
export function valueAt(axis: Axis, share: number): number {
  if (!axis.log) return axis.low * (1 - share) + axis.high * share;
  return Math.exp(Math.log(axis.low) + share * (Math.log(axis.high) - Math.log(axis.low)));
}

/** What a stretch of an axis brushes; undefined: it is too short for anything, or no text lies there. */
export function brushAt(axis: Axis, first: number, second: number): Brush | undefined {
  const [low, high] = [Math.max(0, Math.min(first, second)), Math.min(1, Math.max(first, second))];
  if (axis.texts) {
    const among = axis.texts.filter((text) => {
      const share = shareOf(axis, text) ?? -1;
      return share >= low && share <= high;
    });
    return among.length ? { among } : undefined;
  }
  if (high - low < 0.005) return undefined;
  return { from: valueAt(axis, low), to: valueAt(axis, high) };
}

/** The stretch of an axis that a brush covers. */
export function stretchOf(axis: Axis, brush: Brush): [number, number] | undefined {
  const values: Value[] = "among" in brush ? brush.among : [brush.from, brush.to];
  const shares = values.map((value) => shareOf(axis, value)).filter((share) => share !== undefined);
  if (shares.length === 0) return undefined;
  return [Math.max(0, Math.min(...shares)), Math.min(1, Math.max(...shares))];
}

/** Whether all brushes leave it. */
export function isIn(trial: SearchedTrial, brushes: Brushes): boolean {
  return Object.entries(brushes).every(([name, brush]) => {
    const value = triedOf(trial, name);
    if ("among" in brush) return value !== undefined && brush.among.includes(String(value));
    return typeof value === "number" && value >= brush.from && value <= brush.to;
  });
}

/** Brushes as they stand in an address. */
export function brushesOf(value: unknown): Brushes | undefined {
  if (!value || typeof value !== "object" || Array.isArray(value)) return undefined;
  const brushes: [string, Brush][] = [];
  for (const [name, part] of Object.entries(value as Record<string, unknown>)) {
    if (!Array.isArray(part) || part.length === 0) continue;
    const [from, to] = part;
    if (part.length === 2 && typeof from === "number" && typeof to === "number") brushes.push([name, { from, to }]);
    else if (part.every((text) => typeof text === "string")) brushes.push([name, { among: part as string[] }]);
  }
  return brushes.length ? Object.fromEntries(brushes) : undefined;
}

/** As they are written there: short. */
export function writtenBrushes(brushes: Brushes): Record<string, (number | string)[]> | undefined {
  const entries = Object.entries(brushes).map(([name, brush]): [string, (number | string)[]] => [
    name,
    "among" in brush ? brush.among : [brush.from, brush.to],
  ]);
  return entries.length ? Object.fromEntries(entries) : undefined;
}
