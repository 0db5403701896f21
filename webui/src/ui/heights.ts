/** What the heights of rows are called. */

import type { Density } from "../density";

export const DENSITIES: Record<Density, string> = {
  short: "Short rows: 28 pixels",
  dense: "Dense rows: 32 pixels",
  comfortable: "Comfortable rows: 40 pixels",
  tall: "Tall rows: 52 pixels",
};
