/** Vertical scales of charts: straight or logarithmic, and between the values that somebody chose. */

import type uPlot from "uplot";
import { rounded } from "../format";
import { outOf } from "./units";

export const LINEAR: uPlot.Scale = {};
export const LOGARITHMIC: uPlot.Scale = { distr: 3 };
/** Where some are not above zero, as a logarithm is: one that is straight around zero. */
export const BOTH_SIDES: uPlot.Scale = { distr: 4, asinh: 1e-3 };

/** For values between two, if there are any. */
export function scaleOf([low, high]: readonly [number, number] | [], log: boolean): uPlot.Scale {
  // Between zero and zero a logarithm has no place for anything.
  if (!log || (low === 0 && high === 0)) return LINEAR;
  return low === undefined || low > 0 ? LOGARITHMIC : BOTH_SIDES;
}

/** A scale with the ends that somebody chose; a logarithm has none at zero or below. */
export function within(scale: uPlot.Scale, low?: number, high?: number): uPlot.Scale {
  const log = scale.distr === 3;
  const possible = (end?: number | null) => (log && end != null && end <= 0 ? undefined : (end ?? undefined));
  const [least, most] = [possible(low), possible(high)];
  if (least === undefined && most === undefined) return scale;
  return {
    ...scale,
    range: (_, from, to) => {
      // Where nothing is drawn yet there is no end of its own; from zero a logarithm's axis would never come up.
      const top = most ?? possible(to) ?? 1;
      const bottom = least ?? possible(from) ?? (log ? top / 10 : 0);
      if (bottom < top) return [bottom, top];
      return [bottom, log ? bottom * 10 : bottom + 1];
    },
  };
}

/** Numbers along an axis, with as many digits as tell one from the next. A place that stays empty has none. */
export function numbersOf(places: readonly (number | null)[]): string[] {
  const shown = places.filter((place) => place !== null);
  let texts: string[] = [];
  for (const digits of [4, 6, 8, 10, 12, 14, 17]) {
    texts = places.map((place) => (place === null ? "" : rounded(place, digits)));
    if (new Set(texts.filter((text) => text !== "")).size >= new Set(shown).size) break;
  }
  return texts;
}

export const numbered: uPlot.Axis.Values = (_, places) => numbersOf(places);

/** Of values that are drawn in a unit. */
export function numberedIn(unit: number): uPlot.Axis.Values {
  return (_, places) => numbersOf(places.map((place) => (place === null ? null : outOf(unit, place))));
}

const STEPS = Array.from({ length: 64 }, (_, place) =>
  [1, 2, 2.5, 5].map((part) => Number(`${part}e${place - 32}`)),
).flat();

/** Between ticks: no step that is lost when it is added to a number beside it, or the axis would never end. */
export const apart: uPlot.Axis.Incrs = (_, __, low, high) => {
  const lost = Math.max(Math.abs(low), Math.abs(high)) * Number.EPSILON;
  return STEPS.filter((step) => step > lost);
};

/** The axis is as wide as its longest label, or it would be cut. */
export const widest: uPlot.Axis.Size = (plot, values, axisIndex, cycle) => {
  const axis = plot.axes[axisIndex] as uPlot.Axis & { _size?: number };
  if (cycle > 1) return axis._size ?? 50;
  const label = (values ?? []).reduce((most, value) => (value && value.length > most.length ? value : most), "");
  plot.ctx.font = `${11 * devicePixelRatio}px sans-serif`;
  return Math.ceil(plot.ctx.measureText(label).width / devicePixelRatio) + 12;
};

/** Says in the document between which values a chart is drawn; nothing is said while none is there. */
export function told(plot: uPlot, unit = 1): void {
  const { min, max } = plot.scales.y ?? {};
  if (typeof min === "number" && typeof max === "number") plot.root.dataset.values = `${min * unit} ${max * unit}`;
  else delete plot.root.dataset.values;
}
