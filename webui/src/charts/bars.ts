/** Bars on one another, for what is a part of a whole: how a chart is drawn that has them. */

import type { ComponentProps } from "react";
import type uPlot from "uplot";
import type { Chart, Line } from "../ui/Chart";

/** Bars have names at whole places. */
const STEPS = [1, 2, 3, 4, 5, 7, 10, 14, 20, 30, 50, 100, 200, 500, 1000];

/** Each with all that stands below it. */
export function piled(lines: readonly Line[]): uPlot.AlignedData {
  const steps = lines[0]?.steps ?? [];
  const below = steps.map(() => 0);
  const heights = [...lines].reverse().map((line) =>
    below.map((height, place) => {
      below[place] = height + (line.values[place] ?? 0);
      return below[place] ?? 0;
    }),
  );
  return [steps, ...heights.reverse()];
}

/** The first line on top, at places 0, 1, 2...; all lines have the same. What the pointer is on says its sum. */
export const BARS: ComponentProps<typeof Chart>["drawn"] = {
  data: piled,
  said: 1,
  options: (made, { paths }) => ({
    ...made,
    // They are as wide at the ends as elsewhere.
    scales: { ...made.scales, x: { time: false, range: (_, from, to) => [from - 0.5, to + 0.5] } },
    axes: made.axes?.map((axis, place) => (place === 0 ? { ...axis, incrs: STEPS } : axis)),
    series: made.series.map((series, place) =>
      place === 0
        ? series
        : {
            ...series,
            fill: series.stroke as string,
            width: 0,
            points: { show: false },
            paths: paths.bars?.({ size: [0.8, 48] }),
          },
    ),
  }),
};
