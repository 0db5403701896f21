/** Lines of charts as numbers: smoothed, against steps or time, nearest to a point. Pure. */

export interface TrialLine {
  trial: number;
  /** Rising: steps, or seconds. */
  x: number[];
  /** Null where a value is no number. */
  y: (number | null)[];
}

/**
 * The exponential mean of the values so far, corrected for its beginning at nothing: `weight` from 0 (as it is) below 1.
 * What is no number stays a gap, and changes nothing of what comes.
 */
export function smoothed(values: readonly (number | null)[], weight: number): (number | null)[] {
  if (weight <= 0) return [...values];
  let [mean, counted] = [0, 0];
  return values.map((value) => {
    if (value === null) return null;
    mean = weight * mean + (1 - weight) * value;
    counted += 1;
    return mean / (1 - weight ** counted);
  });
}

/** What is drawn: of a smoothed line the raw one too, faint and behind all others. */
export interface Drawn {
  trial: number;
  faint: boolean;
  x: number[];
  y: (number | null)[];
}

export function drawn(lines: readonly TrialLine[], weight: number): Drawn[] {
  const raw = lines.map((line): Drawn => ({ ...line, faint: weight > 0 }));
  if (weight <= 0) return raw;
  return [...raw, ...lines.map((line): Drawn => ({ ...line, y: smoothed(line.y, weight), faint: false }))];
}

/** The place in rising numbers that is nearest to one. */
export function nearest(rising: readonly number[], to: number): number {
  let [low, high] = [0, rising.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rising[middle] as number) < to) low = middle + 1;
    else high = middle;
  }
  const before = rising[low - 1];
  return before !== undefined && to - before < (rising[low] as number) - to ? low - 1 : low;
}

/** Between which values they lie; undefined: there are none. */
export function span(lines: readonly (readonly (number | null)[])[]): [number, number] | undefined {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const values of lines) {
    for (const value of values) {
      if (value === null) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  return low <= high ? [low, high] : undefined;
}

export interface LineSummary {
  trial: number;
  least: number;
  greatest: number;
  last: number;
}

/** Of those lines that have any number. */
export function summaries(lines: readonly TrialLine[]): LineSummary[] {
  return lines.flatMap(({ trial, y }) => {
    const known = y.filter((value): value is number => value !== null);
    const last = known.at(-1);
    if (last === undefined) return [];
    let [low, high] = [last, last];
    for (const value of known) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    return [{ trial, least: low, greatest: high, last }];
  });
}
