/**
 * Lines of many trials in one chart: hairlines where there are many, the raw line faint behind a smoothed one, gaps where
 * a value is no number. The trial that is hovered anywhere on the page is drawn over all others, not all others again.
 */

import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import { number } from "../format";
import { useShownTheme } from "../theme";
import { Figure } from "./Figure";
import type { Band } from "./groups";
import { hoverer, useHovered } from "./hovered";
import { useInView } from "./inview";
import { type Drawn, drawn, nearest, span, summaries, type TrialLine } from "./lines";
import { faint, GREY, type Look, type Shade } from "./palette";
import { apart, numbered, numberedIn, scaleOf, told, widest, within } from "./scales";
import { elapsedTicks, ticked } from "./ticks";
import { endsIn, inUnit, unitOf } from "./units";

const HEIGHT = 190;
/** More lines, or points, are hairlines: wider ones take ten times as long where there is no graphics card. */
const FINE_LINES = 8;
const FINE_POINTS = 5000;
/** From so many lines on a screen of many pixels is drawn as one of few. */
const COARSE_LINES = 50;
/** A line is hovered within so many pixels. */
const NEAR_PX = 24;

interface CurvesProps {
  title: string;
  lines: TrialLine[];
  looks: ReadonlyMap<number, Look>;
  /** What `x` is. */
  axis: "steps" | "time";
  log?: boolean;
  /** Weight of what was before, from 0 below 1. */
  smoothing?: number;
  /** What stands in its place while there is nothing to draw. */
  waiting?: string;
  /** Called once it comes into view, and when it leaves. */
  onView?: (inView: boolean) => void;
  nameOf?: (trial: number) => string;
  aside?: ReactNode;
  /** Behind lines: how far what they are the mean of spreads. */
  bands?: readonly Band[];
  /** Between which values it is drawn; an end that is not said is that of the data. */
  range?: { low?: number; high?: number };
  /** A line is called so in the table. */
  noun?: string;
  /** Pixels. */
  height?: number;
}

export function Curves(props: CurvesProps) {
  const { title, lines, onView, waiting, axis, nameOf = trialName } = props;
  const frame = useRef<HTMLDivElement>(null);
  const inView = useInView(frame);
  const told = useRef(onView);
  told.current = onView;
  useEffect(() => told.current?.(inView), [inView]);
  const whole = useMemo(() => summaries(lines), [lines]);
  return (
    <Figure
      title={title}
      summary={summaryOf(lines, nameOf)}
      aside={props.aside}
      table={() => ({
        head: [props.noun ?? "Trial", "Last", "Least", "Greatest"],
        rows: whole.map((line) => ({
          key: line.trial,
          cells: [nameOf(line.trial), number(line.last), number(line.least), number(line.greatest)],
        })),
      })}
    >
      <div
        ref={frame}
        style={{ height: props.height ?? HEIGHT }}
        className="relative min-w-0 overflow-hidden"
        data-chart={title}
      >
        {inView && whole.length > 0 && <Plot {...props} />}
        {whole.length === 0 && waiting && <p className="appears-late p-2 text-dim">{waiting}</p>}
      </div>
      <p className="px-1 text-center text-dim text-sm">{axis === "time" ? "time since its start" : "steps"}</p>
    </Figure>
  );
}

function trialName(trial: number): string {
  return `trial ${trial}`;
}

function summaryOf(lines: TrialLine[], nameOf: (trial: number) => string): string {
  const [low, high] = span(lines.map(({ y }) => y)) ?? [];
  if (low === undefined) return "No numbers yet.";
  const last = summaries(lines).sort((a, b) => a.last - b.last);
  const [first, final] = [last[0], last.at(-1)];
  const ends =
    first && final && last.length > 1
      ? ` The last values lie between ${number(first.last)} (${nameOf(first.trial)}) and ${number(final.last)} (${nameOf(final.trial)}).`
      : "";
  return `${last.length} ${last.length === 1 ? "line" : "lines"}, values from ${number(low)} to ${number(high)}.${ends}`;
}

function Plot({ lines, looks, axis, log, smoothing = 0, bands = NONE, range, height = HEIGHT }: CurvesProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const theme = useShownTheme();
  const unit = useMemo(() => unitOf(lines.map(({ y }) => y)), [lines]);
  const shown = useMemo(
    () => drawn(lines, smoothing).map((line) => ({ ...line, y: inUnit(line.y, unit) })),
    [lines, smoothing, unit],
  );
  const latest = useRef(shown);
  latest.current = shown;
  const data = useMemo(() => joined(shown, bands, unit), [shown, bands, unit]);
  const drawnNow = useRef(data);
  drawnNow.current = data;
  const looked = shown.map(({ trial, faint: behind }) => {
    const look = looks.get(trial);
    const colour = look?.colour ?? GREY[theme];
    return `${behind ? faint(colour) : colour}|${look?.dash ?? ""}`;
  });
  const around = bands.map(({ trial }) => faint(looks.get(trial)?.colour ?? GREY[theme], 0x30)).join("|");
  const known = looked.join("\n");
  const [low, high] = endsIn(unit, range?.low, range?.high);
  const points = lines.reduce((sum, line) => sum + line.x.length, 0);
  const fine = shown.length > FINE_LINES || points > FINE_POINTS;
  const scale = useMemo(() => scaleOf(span(shown.map(({ y }) => y)) ?? [], log ?? false), [shown, log]);
  const [drawings, setDrawings] = useState(0);
  // What is drawn may be another each time; how it looks seldom is.
  useEffect(() => {
    const parent = place.current;
    if (!parent) return;
    const hover = hoverer();
    const made = new uPlot(
      options(
        known.split("\n"),
        { theme, width: parent.clientWidth, fine, scale, unit, axis, around, low, high, height },
        (at) => hover(at && lineAt(made, latest.current, at)),
      ),
      drawnNow.current,
      parent,
    );
    plot.current = made;
    setDrawings((count) => count + 1);
    const resized = new ResizeObserver(() => {
      made.setSize({ width: parent.clientWidth, height });
      setDrawings((count) => count + 1);
    });
    resized.observe(parent);
    return () => {
      resized.disconnect();
      plot.current = null;
      made.destroy();
      hover(undefined);
    };
  }, [known, theme, fine, scale, unit, axis, around, low, high, height]);
  useEffect(() => {
    if (plot.current?.data !== data) plot.current?.setData(data);
    setDrawings((count) => count + 1);
  }, [data]);
  return (
    <>
      <div ref={place} />
      <Highlight plot={plot.current} lines={shown} looks={looks} drawings={drawings} />
    </>
  );
}

/** The hovered trial over all others. */
function Highlight(props: {
  plot: uPlot | null;
  lines: Drawn[];
  looks: ReadonlyMap<number, Look>;
  /** Changes whenever the chart below was drawn anew. */
  drawings: number;
}) {
  const { plot, lines, looks, drawings } = props;
  const trial = useHovered();
  const path = useMemo(() => {
    const line = lines.find((each) => each.trial === trial && !each.faint);
    return plot && line && drawings ? pathOf(plot, line) : undefined;
  }, [plot, lines, trial, drawings]);
  if (!path || !plot) return null;
  const { left, top, width, height } = plot.over.getBoundingClientRect();
  const outer = plot.root.getBoundingClientRect();
  return (
    <svg
      aria-hidden="true"
      data-hovered={trial}
      className="pointer-events-none absolute overflow-hidden"
      style={{ left: left - outer.left, top: top - outer.top }}
      width={width}
      height={height}
    >
      <path d={path} fill="none" stroke="var(--surface)" strokeWidth={5} />
      <path d={path} fill="none" stroke={looks.get(trial ?? 0)?.colour ?? "var(--text)"} strokeWidth={2.5} />
    </svg>
  );
}

function pathOf(plot: uPlot, line: Drawn): string {
  let pen = "M";
  let path = "";
  line.x.forEach((x, at) => {
    const y = line.y[at];
    if (y === null || y === undefined) {
      pen = "M";
      return;
    }
    path += `${pen}${plot.valToPos(x, "x").toFixed(1)} ${plot.valToPos(y, "y").toFixed(1)}`;
    pen = "L";
  });
  return path;
}

interface At {
  left: number;
  top: number;
}

/** The trial whose line is nearest to the mouse, if one is near. */
function lineAt(plot: uPlot, lines: readonly Drawn[], { left, top }: At): number | undefined {
  const x = plot.posToVal(left, "x");
  let closest: number | undefined;
  let distance = NEAR_PX;
  for (const line of lines) {
    const y = line.faint || line.x.length === 0 ? null : line.y[nearest(line.x, x)];
    if (y === null || y === undefined) continue;
    const away = Math.abs(plot.valToPos(y, "y") - top);
    if (away < distance) [distance, closest] = [away, line.trial];
  }
  return closest;
}

/** One axis for all lines: where another line has a point this one has no gap; a value that is no number is one. */
function joined(lines: readonly Drawn[], bands: readonly Band[], unit: number): uPlot.AlignedData {
  const tables = [
    ...lines.map((line): uPlot.AlignedData => [line.x, line.y]),
    ...bands.map((band): uPlot.AlignedData => [band.x, inUnit(band.high, unit), inUnit(band.low, unit)]),
  ];
  if (tables.length < 2) return tables[0] ?? [[]];
  return uPlot.join(
    tables,
    tables.map(() => [2]),
  );
}

interface Manner {
  theme: Shade;
  width: number;
  height: number;
  fine: boolean;
  scale: uPlot.Scale;
  /** Of the values that are drawn. */
  unit: number;
  axis: "steps" | "time";
  /** Colours of bands, with bars between them. */
  around: string;
  low?: number;
  high?: number;
}

const NONE: readonly Band[] = [];

function options(looked: string[], manner: Manner, onCursor: (at: At | undefined) => void): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const dim = style.getPropertyValue("--dim").trim();
  const line = style.getPropertyValue("--line").trim();
  const axis = {
    stroke: dim,
    font: "11px sans-serif",
    grid: { stroke: line, width: 1 },
    ticks: { show: false },
    incrs: apart,
  };
  const bands = manner.around ? manner.around.split("|") : [];
  const edge = (): uPlot.Series => ({ width: 0, points: { show: false } });
  return {
    width: manner.width,
    height: manner.height,
    ...(looked.length > COARSE_LINES && { pxRatio: 1 }),
    scales: { x: { time: false }, y: within(manner.scale, manner.low, manner.high) },
    legend: { show: false },
    cursor: { drag: { x: true, y: false }, points: { show: false } },
    axes: [
      { ...axis, size: 26, ...(manner.axis === "time" ? ticked(elapsedTicks) : { values: numbered }) },
      { ...axis, size: widest, values: numberedIn(manner.unit) },
    ],
    series: [
      {},
      ...looked.map((look): uPlot.Series => {
        const [colour, dash] = look.split("|");
        return {
          stroke: colour,
          width: manner.fine ? 1 / devicePixelRatio : 1.5,
          ...(dash && { dash: dash.split(",").map(Number) }),
          points: { show: (_, __, first, last) => last - first < 40, size: 4 },
        };
      }),
      ...bands.flatMap(() => [edge(), edge()]),
    ],
    bands: bands.map((fill, place) => {
      const high = 1 + looked.length + 2 * place;
      return { series: [high, high + 1] as [number, number], fill };
    }),
    hooks: {
      draw: [(plot) => told(plot, manner.unit)],
      setCursor: [({ cursor: { left = -1, top = -1 } }) => onCursor(left < 0 || top < 0 ? undefined : { left, top })],
    },
  };
}
