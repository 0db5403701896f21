/** How values are laid out: straight, or logarithmically. */

import type uPlot from "uplot";

export const LINEAR: uPlot.Scale = {};
export const LOGARITHMIC: uPlot.Scale = { distr: 3 };
/** Where some are not above zero, as a logarithm is: one that is straight around zero. */
export const BOTH_SIDES: uPlot.Scale = { distr: 4, asinh: 1e-3 };

export function scaleOf(lines: readonly { values: readonly (number | null)[] }[], log: boolean): uPlot.Scale {
  if (!log) return LINEAR;
  return lines.every(({ values }) => values.every((value) => value === null || value > 0)) ? LOGARITHMIC : BOTH_SIDES;
}
