/** Vertical scales of charts: straight or logarithmic, and between the values that somebody chose. */

import type uPlot from "uplot";
import { rounded } from "../format";

export const LINEAR: uPlot.Scale = {};
export const LOGARITHMIC: uPlot.Scale = { distr: 3 };
/** Where some are not above zero, as a logarithm is: one that is straight around zero. */
export const BOTH_SIDES: uPlot.Scale = { distr: 4, asinh: 1e-3 };

export function scaleOf(lines: readonly { values: readonly (number | null)[] }[], log: boolean): uPlot.Scale {
  if (!log) return LINEAR;
  return lines.every(({ values }) => values.every((value) => value === null || value > 0)) ? LOGARITHMIC : BOTH_SIDES;
}

/** A scale with the ends that somebody chose; a logarithm has none at zero or below. */
export function within(scale: uPlot.Scale, low?: number, high?: number): uPlot.Scale {
  const least = scale.distr === 3 && low !== undefined && low <= 0 ? undefined : low;
  if (least === undefined && high === undefined) return scale;
  return {
    ...scale,
    range: (_, from, to) => {
      const ends: [number, number] = [least ?? from ?? 0, high ?? to ?? 1];
      return ends[0] < ends[1] ? ends : [ends[0], ends[0] + 1];
    },
  };
}

/** Numbers along an axis, with as many digits as tell one from the next. A place that stays empty has none. */
export function numbersOf(places: readonly (number | null)[]): string[] {
  const shown = places.filter((place) => place !== null);
  let texts: string[] = [];
  for (const digits of [4, 6, 8, 10, 12]) {
    texts = places.map((place) => (place === null ? "" : rounded(place, digits)));
    if (new Set(texts.filter((text) => text !== "")).size >= new Set(shown).size) break;
  }
  return texts;
}

export const numbered: uPlot.Axis.Values = (_, places) => numbersOf(places);

/** The axis is as wide as its longest label, or it would be cut. */
export const widest: uPlot.Axis.Size = (plot, values, axisIndex, cycle) => {
  const axis = plot.axes[axisIndex] as uPlot.Axis & { _size?: number };
  if (cycle > 1) return axis._size ?? 50;
  const label = (values ?? []).reduce((most, value) => (value && value.length > most.length ? value : most), "");
  plot.ctx.font = `${11 * devicePixelRatio}px sans-serif`;
  return Math.ceil(plot.ctx.measureText(label).width / devicePixelRatio) + 12;
};

/** Says in the document between which values a chart is drawn. */
export function told(plot: uPlot): void {
  const { min, max } = plot.scales.y ?? {};
  plot.root.dataset.values = `${min} ${max}`;
}
