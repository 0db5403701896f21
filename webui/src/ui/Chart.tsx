/**
 * Lines over steps, drawn by uPlot: hairlines where there are many, gaps where a value is no number.
 *
 * A chart is drawn once it comes into view, and says in words what it shows.
 */

import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import { number } from "../format";
import { useShownTheme } from "../theme";

const PALETTE = {
  light: ["#0067a3", "#b45f00", "#00785a", "#b0407f", "#c43c00", "#3d7fc4", "#6a4fd8", "#6b6f00", "#8a4b2f", "#4a5a6a"],
  dark: ["#5bb0f0", "#f0a53a", "#35c79a", "#e78cc0", "#ff8a5c", "#8ecbff", "#a99cff", "#c8cc4a", "#d2a08a", "#aab6c4"],
};
const HEIGHT = 170;

export interface Line {
  name: string;
  steps: number[];
  values: (number | null)[];
}

export function Chart({ title, lines, x = "step" }: { title: string; lines: Line[]; x?: string }) {
  const frame = useRef<HTMLDivElement>(null);
  const readout = useRef<HTMLSpanElement>(null);
  const theme = useShownTheme();
  const seen = useSeen(frame);
  const data = useMemo(() => aligned(lines), [lines]);
  const names = lines.map((line) => line.name).join("\u0000");
  useEffect(() => {
    const place = frame.current;
    if (!place || !seen) return;
    const plot = new uPlot(options(names.split("\u0000"), theme, place.clientWidth, readout.current), data, place);
    drawn.set(place, plot);
    const resized = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: HEIGHT }));
    resized.observe(place);
    return () => {
      resized.disconnect();
      drawn.delete(place);
      plot.destroy();
    };
  }, [seen, theme, names]);
  useEffect(() => {
    if (frame.current) drawn.get(frame.current)?.setData(data);
  }, [data]);

  const summary = lines.map((line) => `${line.name}: ${said(line)}`).join("; ");
  return (
    <figure className="min-w-0 rounded-md border border-line p-2" aria-label={`${title}. ${summary}`}>
      <figcaption className="flex min-w-0 items-baseline gap-3 px-1 pb-1">
        <span className="truncate font-medium" title={title}>
          {title}
        </span>
        <span className="flex min-w-0 flex-1 flex-wrap gap-x-3 text-sm">
          {lines.length > 1 &&
            lines.map((line, place) => (
              <span key={line.name} className="inline-flex items-center gap-1 whitespace-nowrap text-dim">
                <span aria-hidden="true" className="h-0.5 w-3" style={{ background: colour(theme, place) }} />
                {line.name}
              </span>
            ))}
        </span>
        <span ref={readout} aria-hidden="true" className="whitespace-nowrap text-dim text-sm" />
      </figcaption>
      <div ref={frame} style={{ height: HEIGHT }} className="min-w-0 overflow-hidden" />
      <p className="px-1 text-center text-dim text-sm">{x}</p>
    </figure>
  );
}

const drawn = new WeakMap<HTMLElement, uPlot>();

function colour(theme: "light" | "dark", place: number): string {
  return PALETTE[theme][place % 10] as string;
}

function said(line: Line): string {
  const known = line.values.filter((value): value is number => value !== null);
  if (known.length === 0) return "no numbers";
  let [least, greatest] = [known[0] as number, known[0] as number];
  for (const value of known) {
    least = Math.min(least, value);
    greatest = Math.max(greatest, value);
  }
  return `from ${number(least)} to ${number(greatest)}, last ${number(known[known.length - 1])}`;
}

/** One axis of steps for all lines. */
export function aligned(lines: Line[]): uPlot.AlignedData {
  if (lines.length === 0) return [[]];
  const tables = lines.map((line): uPlot.AlignedData => [line.steps, line.values]);
  if (tables.length === 1) return tables[0] as uPlot.AlignedData;
  // A step at which another line has a value is no gap of this one; a value that is no number is.
  return uPlot.join(
    tables,
    tables.map(() => [2]),
  );
}

function options(names: string[], theme: "light" | "dark", width: number, readout: HTMLElement | null): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const dim = style.getPropertyValue("--dim").trim();
  const line = style.getPropertyValue("--line").trim();
  const fine = names.length > 8;
  const axis = { stroke: dim, font: "11px sans-serif", grid: { stroke: line, width: 1 }, ticks: { show: false } };
  return {
    width,
    height: HEIGHT,
    scales: { x: { time: false } },
    legend: { show: false },
    cursor: { drag: { x: true, y: false }, points: { size: 6 } },
    axes: [
      { ...axis, size: 26, values: (_, splits) => splits.map(number) },
      { ...axis, size: widest, values: (_, splits) => splits.map(number) },
    ],
    series: [
      {},
      ...names.map((name, place) => ({
        label: name,
        stroke: colour(theme, place),
        width: fine ? 1 / devicePixelRatio : 1.5,
        dash: place >= 10 ? [4, 3] : undefined,
        points: { show: (_: uPlot, __: number, first: number, last: number) => last - first < 40, size: 4 },
      })),
    ],
    hooks: {
      setCursor: [
        (plot) => {
          if (!readout) return;
          const at = plot.cursor.idx;
          readout.textContent = at === null || at === undefined ? "" : cursorText(plot, at);
        },
      ],
    },
  };
}

function cursorText(plot: uPlot, at: number): string {
  const values = plot.series.slice(1, 5).map((_, place) => plot.data[place + 1]?.[at]);
  const known = values.filter((value) => value !== null && value !== undefined);
  return `${number(plot.data[0][at])}: ${known.map((value) => number(value)).join(", ")}`;
}

/** The axis is as wide as its longest label, or it would be cut. */
const widest: uPlot.Axis.Size = (plot, values, axisIndex, cycle) => {
  const axis = plot.axes[axisIndex] as uPlot.Axis & { _size?: number };
  if (cycle > 1) return axis._size ?? 50;
  const longest = (values ?? []).reduce((most, value) => (value && value.length > most.length ? value : most), "");
  plot.ctx.font = `${11 * devicePixelRatio}px sans-serif`;
  return Math.ceil(plot.ctx.measureText(longest).width / devicePixelRatio) + 12;
};

/** Whether it has been in view, or almost. */
function useSeen(place: React.RefObject<HTMLElement | null>): boolean {
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    if (!place.current) return;
    const watcher = new IntersectionObserver(
      ([entry]) => {
        if (entry?.isIntersecting) {
          setSeen(true);
          watcher.disconnect();
        }
      },
      { rootMargin: "200px" },
    );
    watcher.observe(place.current);
    return () => watcher.disconnect();
  }, [place]);
  return seen;
}
