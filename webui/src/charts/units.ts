/**
 * In what unit values are drawn: uPlot subtracts values from one another, and adds to them from tick to tick. What is
 * too large or too small for that is divided first, and its axis says what it was. Pure.
 */

/** Between these nothing is lost; what is nearer to zero than `NOTHING`, where others are drawn with it, has no logarithm. */
const [SMALL, LARGE, NOTHING] = [1e-12, 1e30, 1e-290];
/** The least power of ten that is a number. */
const LEAST_POWER = -323;

type Values = readonly (number | null)[];

/** A power of ten. */
export function unitOf(all: readonly Values[]): number {
  let greatest = 0;
  for (const values of all) {
    for (const value of values) if (value !== null) greatest = Math.max(greatest, Math.abs(value));
  }
  if (greatest === 0 || (greatest >= SMALL && greatest <= LARGE)) return 1;
  return 10 ** Math.max(LEAST_POWER, Math.floor(Math.log10(greatest)));
}

/** Values in such a unit. */
export function inUnit(values: (number | null)[], unit: number): (number | null)[] {
  const isNothing = (value: number | null) => value !== null && value !== 0 && Math.abs(value / unit) < NOTHING;
  if (unit === 1 && !values.some(isNothing)) return values;
  return values.map((value) => (value === null ? null : isNothing(value) ? 0 : value / unit));
}

/** Ends that somebody chose, in such a unit. */
export function endsIn(
  unit: number,
  low?: number | null,
  high?: number | null,
): [number | undefined, number | undefined] {
  const end = (chosen?: number | null) => (chosen === undefined || chosen === null ? undefined : chosen / unit);
  return [end(low), end(high)];
}

/** The value itself; null: it is beyond all numbers. */
export function outOf(unit: number, value: number): number | null {
  const whole = value * unit;
  return Number.isFinite(whole) ? whole : null;
}

/** Where a value lies between two others, from 0 to 1: their distance may be beyond all numbers. */
export function shareBetween(low: number, high: number, value: number): number {
  const unit = Math.max(Math.abs(low), Math.abs(high)) || 1;
  return (value / unit - low / unit) / (high / unit - low / unit);
}
