/** Marks on a chart, as diamonds on its first line: drawn on its canvas, however many there are. */

import type { RefObject } from "react";
import type uPlot from "uplot";
import type { Mark } from "../ui/Chart";
import { nearest } from "./lines";

export interface Marking {
  marks?: Mark[];
  onMark?: () => void;
}

const SIZE_PX = 5;
/** So near to a mark a click means it. */
const NEAR_PX = 9;

interface Place {
  x: number;
  y: number;
}

/** Where a mark stands, in pixels of the plot; undefined: outside of what is shown. */
function placeOf(plot: uPlot, at: number): Place | undefined {
  const [low, high] = [plot.scales.x?.min ?? 0, plot.scales.x?.max ?? 0];
  const xs = plot.data[0];
  if (at < low || at > high || xs.length === 0) return undefined;
  const from = nearest(xs as number[], at);
  for (const values of plot.data.slice(1)) {
    // The line may have its value a little before or behind.
    for (const place of [from, from - 1, from + 1]) {
      const value = values?.[place];
      if (value !== null && value !== undefined)
        return { x: plot.valToPos(at, "x"), y: plot.valToPos(value as number, "y") };
    }
  }
  return { x: plot.valToPos(at, "x"), y: plot.over.clientHeight - SIZE_PX };
}

function paint(plot: uPlot, marks: readonly Mark[]): void {
  const style = getComputedStyle(document.documentElement);
  const [ink, ground] = [style.getPropertyValue("--text").trim(), style.getPropertyValue("--surface").trim()];
  const { ctx } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.lineWidth = 1.2 * ratio;
  ctx.strokeStyle = ink;
  for (const mark of [...marks].sort((a, b) => Number(a.best) - Number(b.best))) {
    const place = placeOf(plot, mark.at);
    if (!place) continue;
    const [x, y] = [plot.bbox.left + place.x * ratio, plot.bbox.top + place.y * ratio];
    const size = SIZE_PX * ratio * (mark.best ? 1.3 : 1);
    ctx.fillStyle = mark.best ? ink : ground;
    ctx.beginPath();
    ctx.moveTo(x, y - size);
    ctx.lineTo(x + size, y);
    ctx.lineTo(x, y + size);
    ctx.lineTo(x - size, y);
    ctx.closePath();
    ctx.fill();
    ctx.stroke();
  }
  ctx.restore();
}

export function withMarks(made: uPlot.Options, marking: RefObject<Marking>): uPlot.Options {
  if (!marking.current.marks?.length) return made;
  const draw = (plot: uPlot) => paint(plot, marking.current.marks ?? []);
  const listen = (plot: uPlot) =>
    plot.over.addEventListener("click", (event) => {
      const hit = (marking.current.marks ?? []).some((mark) => {
        const place = placeOf(plot, mark.at);
        return place && Math.hypot(place.x - event.offsetX, place.y - event.offsetY) <= NEAR_PX;
      });
      if (hit) marking.current.onMark?.();
    });
  return { ...made, hooks: { ...made.hooks, draw: [...(made.hooks?.draw ?? []), draw], ready: [listen] } };
}
