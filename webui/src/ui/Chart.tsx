/**
 * Lines over steps, drawn by uPlot: hairlines where there are many, gaps where a value is no number.
 *
 * A chart is drawn once it comes into view, and says in words what it shows.
 */

import { type ReactNode, type RefObject, useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import { Figure } from "../charts/Figure";
import { span } from "../charts/lines";
import { type Marking, withMarks } from "../charts/marks";
import { faint, PALETTE } from "../charts/palette";
import { apart, numbered, numberedIn, scaleOf, told, widest, within } from "../charts/scales";
import { type Ticks, ticked } from "../charts/ticks";
import { endsIn, inUnit, outOf, unitOf } from "../charts/units";
import { number } from "../format";
import { useShownTheme } from "../theme";
import { visible } from "../visible";

const HEIGHT = 170;

export interface Line {
  name: string;
  /** Rising: steps, or what else the axis shows. */
  steps: number[];
  values: (number | null)[];
  /** Behind a smoothed one of the same name. */
  faint?: boolean;
}

/** Called with the places of the axis between which somebody dragged; without any for all of them. */
export type Zoom = (from?: number, to?: number) => void;

type Across = (value: number | null | undefined, shown: number) => string;

/** Something that happened at a place of the axis. */
export interface Mark {
  at: number;
  /** Drawn whole, the others as outlines. */
  best: boolean;
}

interface Drawing {
  data: (lines: Line[]) => uPlot.AlignedData;
  options: (made: uPlot.Options, parts: typeof uPlot) => uPlot.Options;
  /** How many of its values are said of the place that the pointer is on. */
  said: number;
}

interface ChartProps {
  title: string;
  lines: Line[];
  x?: string;
  onZoom?: Zoom;
  /** How a place on the axis is written, of which so much is shown. */
  across?: Across;
  /** Where the axis is marked, and how; without it, at whole places, as `across` writes them. */
  ticks?: Ticks;
  log?: boolean;
  /** Between which values it is drawn; an end that is not said is that of the data. */
  range?: { low?: number; high?: number };
  /** Pixels. */
  height?: number;
  /** Otherwise than as lines. */
  drawn?: Drawing;
  marks?: Mark[];
  /** A mark was clicked. */
  onMark?: () => void;
  aside?: ReactNode;
}

export function Chart(props: ChartProps) {
  const { title, lines, x = "step" } = props;
  const readout = useRef<HTMLSpanElement>(null);
  const theme = useShownTheme();
  const clear = lines.filter((line) => !line.faint);
  // What was reported, not what it was smoothed to.
  const reported = lines.some((line) => line.faint) ? lines.filter((line) => line.faint) : lines;
  const summary = reported.map((line) => `${line.name}: ${said(line)}`).join("; ");
  return (
    <Figure
      title={title}
      summary={summary}
      aside={
        <>
          {clear.length > 1 && (
            // On a line of its own, or it would drive what can be done to the chart there.
            <span className="order-last flex basis-full flex-wrap gap-x-3">
              {clear.map((line, place) => (
                <span key={line.name} className="inline-flex items-center gap-1 whitespace-nowrap text-dim text-sm">
                  <span aria-hidden="true" className="h-0.5 w-3" style={{ background: colour(theme, place) }} />
                  {visible(line.name)}
                </span>
              ))}
            </span>
          )}
          <span ref={readout} aria-hidden="true" className="whitespace-nowrap text-dim text-sm" />
          {props.aside}
        </>
      }
      table={() => ({
        head: ["", "Points", "Last", "Least", "Greatest"],
        rows: reported.map((line) => {
          const known = rangeOf(line);
          const shown = known
            ? [known.last, known.least, known.greatest].map((value) => number(value))
            : ["–", "–", "–"];
          return { key: line.name, cells: [line.name, number(line.values.length), ...shown] };
        }),
      })}
    >
      {lines.some((line) => line.values.length > 0) && !lines.some(rangeOf) ? (
        <p style={{ height: props.height ?? HEIGHT }} className="p-2 text-dim">
          None of its values is a number.
        </p>
      ) : (
        <Plot {...props} readout={readout} />
      )}
      <p className="px-1 text-center text-dim text-sm">{x}</p>
    </Figure>
  );
}

interface PlotProps extends ChartProps {
  readout: RefObject<HTMLSpanElement | null>;
}

function Plot(props: PlotProps) {
  const {
    lines,
    onZoom,
    readout,
    across,
    ticks,
    log = false,
    range,
    height = HEIGHT,
    drawn: drawing,
    marks,
    onMark,
  } = props;
  const frame = useRef<HTMLDivElement>(null);
  const theme = useShownTheme();
  const seen = useSeen(frame);
  const unit = useMemo(() => unitOf(lines.map(({ values }) => values)), [lines]);
  const scaled = useMemo(() => lines.map((line) => ({ ...line, values: inUnit(line.values, unit) })), [lines, unit]);
  const data = useMemo(() => (drawing?.data ?? aligned)(scaled), [scaled, drawing]);
  const names = lines.map((line) => (line.faint ? FAINT : "") + line.name).join("\u0000");
  const zoom = useRef(onZoom);
  zoom.current = onZoom;
  const zooms = onZoom !== undefined;
  const marking = useRef<Marking>({ marks, onMark });
  marking.current = { marks, onMark };
  const marked = (marks?.length ?? 0) > 0;
  const [low, high] = endsIn(unit, range?.low, range?.high);
  const scale = useMemo(
    () => within(scaleOf(span(scaled.map(({ values }) => values)) ?? [], log), low, high),
    [scaled, log, low, high],
  );
  useEffect(() => {
    const place = frame.current;
    if (!place || !seen) return;
    const manner = {
      theme,
      width: place.clientWidth,
      height,
      readout: readout.current,
      across,
      ticks,
      scale,
      unit,
      said: drawing?.said,
    };
    const plain = options(names.split("\u0000"), manner);
    const made = withMarks(drawing ? drawing.options(plain, uPlot) : plain, marking);
    const plot = new uPlot(zooms ? zooming(made, (from, to) => zoom.current?.(from, to)) : made, data, place);
    drawn.set(place, plot);
    const resized = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height }));
    resized.observe(place);
    return () => {
      resized.disconnect();
      drawn.delete(place);
      plot.destroy();
    };
  }, [seen, theme, names, zooms, across, ticks, scale, unit, marked, height, drawing]);
  useEffect(() => {
    if (frame.current) drawn.get(frame.current)?.setData(data);
    // Marks are drawn with the lines.
  }, [data, marks]);
  return <div ref={frame} style={{ height }} className="min-w-0 overflow-hidden" />;
}

/** Before the name of a line that is faint. */
const FAINT = "~";

const drawn = new WeakMap<HTMLElement, uPlot>();

function colour(theme: "light" | "dark", place: number): string {
  return PALETTE[theme][place % 10] as string;
}

interface Range {
  least: number;
  greatest: number;
  last: number;
}

function rangeOf(line: Line): Range | undefined {
  const known = line.values.filter((value): value is number => value !== null);
  const last = known.at(-1);
  if (last === undefined) return undefined;
  let [least, greatest] = [last, last];
  for (const value of known) {
    least = Math.min(least, value);
    greatest = Math.max(greatest, value);
  }
  return { least, greatest, last };
}

function said(line: Line): string {
  const known = rangeOf(line);
  if (!known) return "no numbers";
  return `from ${number(known.least)} to ${number(known.greatest)}, last ${number(known.last)}`;
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

interface Manner {
  theme: "light" | "dark";
  width: number;
  readout: HTMLElement | null;
  across?: Across;
  ticks?: Ticks;
  scale: uPlot.Scale;
  /** Of the values that are drawn. */
  unit: number;
  said?: number;
}

function options(names: string[], manner: Manner): uPlot.Options {
  const { theme, width, readout, across, ticks, scale, unit } = manner;
  const style = getComputedStyle(document.documentElement);
  const dim = style.getPropertyValue("--dim").trim();
  const line = style.getPropertyValue("--line").trim();
  const fine = names.length > 8;
  const known = [...new Set(names.map((name) => name.replace(/^~/, "")))];
  const axis = {
    stroke: dim,
    font: "11px sans-serif",
    grid: { stroke: line, width: 1 },
    ticks: { show: false },
    incrs: apart,
  };
  return {
    width,
    height: HEIGHT,
    scales: { x: { time: false }, y: scale },
    legend: { show: false },
    cursor: { drag: { x: true, y: false }, points: { size: 6 } },
    axes: [
      {
        ...axis,
        size: 26,
        ...(ticks ? ticked(ticks) : { values: across ? (_, places) => places.map((at) => across(at, 0)) : numbered }),
      },
      { ...axis, size: widest, values: numberedIn(unit) },
    ],
    series: [
      {},
      ...names.map((written) => {
        const behind = written.startsWith(FAINT);
        const name = behind ? written.slice(1) : written;
        const place = known.indexOf(name);
        return {
          label: name,
          stroke: behind ? faint(colour(theme, place)) : colour(theme, place),
          width: fine ? 1 / devicePixelRatio : 1.5,
          dash: place >= 10 ? [4, 3] : undefined,
          points: {
            show: (_: uPlot, __: number, first: number, last: number) => !behind && last - first < 40,
            size: 4,
          },
        };
      }),
    ],
    hooks: {
      draw: [(plot) => told(plot, unit)],
      setCursor: [
        (plot) => {
          if (!readout) return;
          const at = plot.cursor.idx;
          readout.textContent = at === null || at === undefined ? "" : cursorText(plot, at, manner);
        },
      ],
    },
  };
}

/** A range that is dragged is told, and drawn once its points are there; a double click leads back to all. */
function zooming(made: uPlot.Options, zoom: Zoom): uPlot.Options {
  const drag = { x: true, y: false, setScale: false };
  const dblclick = () => () => {
    zoom();
    return null;
  };
  const setSelect = (plot: uPlot) => {
    const { left, width } = plot.select;
    if (width < 2) return;
    const [from, to] = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    zoom(from, to);
  };
  return {
    ...made,
    cursor: { ...made.cursor, drag, bind: { dblclick } },
    hooks: { ...made.hooks, setSelect: [setSelect] },
  };
}

function cursorText(plot: uPlot, at: number, { across, unit, said = 4 }: Manner): string {
  const values = plot.series.slice(1, said + 1).map((_, place) => plot.data[place + 1]?.[at]);
  const known = values.filter((value) => value !== null && value !== undefined);
  const { min = 0, max = 0 } = plot.scales.x ?? {};
  const place = plot.data[0][at];
  return `${across ? across(place, (max ?? 0) - (min ?? 0)) : number(place)}: ${known.map((value) => number(outOf(unit, value as number))).join(", ")}`;
}

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
