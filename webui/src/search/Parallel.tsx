/**
 * Parallel coordinates: a line for each trial over an axis for each hyperparameter, the metric last. What is drawn on an
 * axis with the mouse, or typed below, narrows the trials; all of them are on one canvas of our own.
 */

import { type PointerEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import { Figure } from "../charts/Figure";
import { hover, useHovered } from "../charts/hovered";
import { GREY, heat, type Shade } from "../charts/palette";
import { count, number } from "../format";
import { own } from "../own";
import type { Brushes, SearchedTrial } from "../services/searching";
import { useShownTheme } from "../theme";
import { Button, FIELD } from "../ui/Button";
import { visible } from "../visible";
import { type Axis, brushAt, isIn, mayBeLog, placedBefore, shareOf, stretchOf, triedOf } from "./axes";

const HEIGHT = 220;
/** Beside the first and the last axis, above and below all of them. */
const SIDE = 58;
const EDGE = 10;
const BRUSH_PX = 28;
const NEAR_PX = 7;

interface ParallelProps {
  trials: SearchedTrial[];
  axes: Axis[];
  brushes: Brushes;
  onBrush: (brushes: Brushes) => void;
  /** Axes in another order. */
  onOrder: (names: string[]) => void;
  /** An axis to its other scale. */
  onFlip: (name: string) => void;
}

export function Parallel(props: ParallelProps) {
  const { trials, axes, brushes, onBrush } = props;
  const left = useMemo(() => trials.filter((trial) => isIn(trial, brushes)), [trials, brushes]);
  const brushed = Object.keys(brushes).length > 0;
  return (
    <Figure
      title="Hyperparameters of each trial"
      summary={`Parallel coordinates of ${count(trials.length)} trials over ${axes.map((axis) => axis.title).join(", ")}${brushed ? `; ${count(left.length)} of them are left by what is brushed` : ""}.`}
      aside={
        brushed ? (
          <>
            <span className="text-dim text-sm" aria-live="polite">
              {count(left.length)} of {count(trials.length)}
            </span>
            <Button onClick={() => onBrush({})}>Show all trials</Button>
          </>
        ) : undefined
      }
      table={() => ({
        head: ["Trial", ...axes.map((axis) => axis.title)],
        rows: left.map((trial) => ({
          key: trial.id,
          cells: [trial.id, ...axes.map((axis) => written(triedOf(trial, axis.name)))],
        })),
      })}
    >
      <Drawing {...props} />
      <Fields {...props} />
    </Figure>
  );
}

function written(value: number | string | undefined): string {
  return typeof value === "number" ? number(value) : visible(value ?? "–");
}

/** Shares of a trial on all axes; where it has none it has a gap. */
type Path = { trial: SearchedTrial; shares: (number | undefined)[] };

function Drawing({ trials, axes, brushes, onBrush, onOrder }: ParallelProps) {
  const names = axes.map((axis) => axis.name);
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useShownTheme();
  const [width, setWidth] = useState(0);
  const [pulled, setPulled] = useState<{ axis: Axis; from: number; to: number }>();
  const paths = useMemo(
    () =>
      trials.map((trial): Path => ({ trial, shares: axes.map((axis) => shareOf(axis, triedOf(trial, axis.name))) })),
    [trials, axes],
  );
  useEffect(() => {
    const place = frame.current;
    if (!place) return;
    const resized = new ResizeObserver(() => setWidth(place.clientWidth));
    resized.observe(place);
    return () => resized.disconnect();
  }, []);
  const xOf = (place: number) => SIDE + (place * (width - 2 * SIDE)) / Math.max(1, axes.length - 1);
  useEffect(() => {
    if (canvas.current && width) draw(canvas.current, { paths, brushes, theme, width, axes });
  }, [paths, brushes, theme, width, axes]);

  const label = Math.min(2 * SIDE, Math.max(66, xOf(1) - xOf(0) - 8));
  const shareAt = (event: PointerEvent) => {
    const box = (frame.current as HTMLElement).getBoundingClientRect();
    return 1 - (event.clientY - box.top - EDGE) / (HEIGHT - 2 * EDGE);
  };
  const onMove = (event: PointerEvent) => {
    if (pulled) return setPulled({ ...pulled, to: shareAt(event) });
    const box = (frame.current as HTMLElement).getBoundingClientRect();
    hover(pathAt(paths, brushes, axes.length, (event.clientX - box.left - SIDE) / (width - 2 * SIDE), shareAt(event)));
  };
  const onUp = () => {
    if (!pulled) return;
    const { [pulled.axis.name]: _, ...rest } = brushes;
    const brush = brushAt(pulled.axis, pulled.from, pulled.to);
    onBrush(brush ? { ...rest, [pulled.axis.name]: brush } : rest);
    setPulled(undefined);
  };
  return (
    <div className="overflow-x-auto">
      <div style={{ minWidth: axes.length * 76 }}>
        <div
          ref={frame}
          aria-hidden="true"
          className="relative touch-none select-none"
          style={{ height: HEIGHT }}
          onPointerMove={onMove}
          onPointerUp={onUp}
          onPointerLeave={() => hover(undefined)}
        >
          <canvas ref={canvas} className="absolute inset-0 size-full" />
          <Hovered paths={paths} xOf={xOf} />
          {axes.map((axis, place) => {
            const brush = own(brushes, axis.name);
            const stretch =
              pulled?.axis.name === axis.name
                ? [Math.min(pulled.from, pulled.to), Math.max(pulled.from, pulled.to)]
                : brush && stretchOf(axis, brush);
            return (
              <div
                key={axis.name}
                data-axis={axis.name || "metric"}
                className="absolute inset-y-0 cursor-row-resize"
                style={{ left: xOf(place) - BRUSH_PX / 2, width: BRUSH_PX }}
                onPointerDown={(event) => {
                  frame.current?.setPointerCapture(event.pointerId);
                  setPulled({ axis, from: shareAt(event), to: shareAt(event) });
                }}
              >
                <div className="absolute inset-x-[13px] border-dim border-l" style={{ top: EDGE, bottom: EDGE }} />
                {stretch && <Stretch low={stretch[0] as number} high={stretch[1] as number} />}
              </div>
            );
          })}
        </div>
        <div aria-hidden="true" className="relative h-10 text-center text-sm">
          {axes.map((axis, place) => (
            // biome-ignore lint/a11y/noStaticElementInteractions: below are buttons for whoever has no mouse.
            <div
              key={axis.name}
              data-title={axis.name || "metric"}
              draggable
              onDragStart={(event) => event.dataTransfer.setData(DRAGGED, JSON.stringify(axis.name))}
              onDragOver={(event) => event.dataTransfer.types.includes(DRAGGED) && event.preventDefault()}
              onDrop={(event) => {
                event.preventDefault();
                onOrder(placedBefore(names, JSON.parse(event.dataTransfer.getData(DRAGGED)), axis.name));
              }}
              className="absolute -translate-x-1/2 cursor-grab"
              style={{ left: xOf(place), width: label }}
            >
              <p className="truncate font-medium" title={axis.title}>
                {axis.title}
              </p>
              <p className="truncate text-dim" title={rangeOf(axis)}>
                {rangeOf(axis)}
              </p>
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

const DRAGGED = "application/x-tenax-axis";

function rangeOf(axis: Axis): string {
  if (axis.texts) return visible(axis.texts.join(", "));
  return `${number(axis.low)} – ${number(axis.high)}${axis.log ? " log" : ""}`;
}

function Stretch({ low, high }: { low: number; high: number }) {
  const [from, to] = [Math.max(0, low), Math.min(1, high)];
  const inner = HEIGHT - 2 * EDGE;
  return (
    <div
      data-brushed
      className="absolute inset-x-1.5 rounded-sm border border-accent bg-accent/25"
      style={{ top: EDGE + (1 - to) * inner - 2, height: Math.max(4, (to - from) * inner + 4) }}
    />
  );
}

function Hovered({ paths, xOf }: { paths: Path[]; xOf: (place: number) => number }) {
  const trial = useHovered();
  const path = paths.find((each) => each.trial.id === trial);
  if (!path) return null;
  const points = path.shares.flatMap((share, place) => (share === undefined ? [] : `${xOf(place)},${yOf(share)}`));
  return (
    <svg aria-hidden="true" data-hovered={trial} className="pointer-events-none absolute inset-0 size-full">
      <polyline points={points.join(" ")} fill="none" stroke="var(--surface)" strokeWidth={6} />
      <polyline points={points.join(" ")} fill="none" stroke="var(--text)" strokeWidth={2.5} />
    </svg>
  );
}

function yOf(share: number): number {
  return EDGE + (1 - share) * (HEIGHT - 2 * EDGE);
}

function draw(
  canvas: HTMLCanvasElement,
  of: { paths: Path[]; brushes: Brushes; theme: Shade; width: number; axes: Axis[] },
): void {
  const ratio = of.paths.length > 300 ? 1 : devicePixelRatio;
  canvas.width = of.width * ratio;
  canvas.height = HEIGHT * ratio;
  const pen = canvas.getContext("2d");
  if (!pen) return;
  pen.scale(ratio, ratio);
  const step = (of.width - 2 * SIDE) / Math.max(1, of.axes.length - 1);
  // The best come last: they are on top. Beyond the hundredth lines are thin, and those that are not meant thinner.
  const ordered = [...of.paths].reverse();
  const ranked = of.paths.filter((path) => path.trial.metric !== null && path.trial.metric !== undefined);
  const places = new Map(ranked.map((path, place) => [path.trial.id, 1 - place / Math.max(1, ranked.length - 1)]));
  const meant = (path: Path) => isIn(path.trial, of.brushes);
  for (const [paths, grey] of [
    [ordered.filter((path) => !meant(path)), true],
    [ordered.filter(meant), false],
  ] as const) {
    for (const path of paths) {
      const place = places.get(path.trial.id);
      pen.strokeStyle = grey || place === undefined ? GREY[of.theme] : heat(place, of.theme);
      pen.globalAlpha = grey ? 0.18 : of.paths.length > 100 ? 0.5 : 0.8;
      pen.lineWidth = grey || of.paths.length > 100 ? 1 : 1.4;
      pen.beginPath();
      let down = false;
      path.shares.forEach((share, axis) => {
        if (share === undefined) down = false;
        else if (down) pen.lineTo(SIDE + axis * step, yOf(share));
        else {
          pen.moveTo(SIDE + axis * step, yOf(share));
          down = true;
        }
      });
      pen.stroke();
    }
  }
}

/** The trial whose line is nearest to a point; `across` from 0 at the first axis to 1 at the last. */
function pathAt(paths: Path[], brushes: Brushes, axes: number, across: number, up: number): number | undefined {
  const at = Math.min(axes - 1.001, Math.max(0, across * (axes - 1)));
  const before = Math.floor(at);
  let [distance, closest]: [number, number | undefined] = [NEAR_PX / HEIGHT, undefined];
  for (const { trial, shares } of paths) {
    const [from, to] = [shares[before], shares[before + 1]];
    if (from === undefined || to === undefined || !isIn(trial, brushes)) continue;
    const away = Math.abs(from + (to - from) * (at - before) - up);
    if (away < distance) [distance, closest] = [away, trial.id];
  }
  return closest;
}

/** The same without a mouse. */
function Fields(props: Omit<ParallelProps, "trials">) {
  const { axes, brushes, onBrush } = props;
  const id = useId();
  return (
    <details className="px-1 pt-1">
      <summary className="min-h-6 w-fit cursor-pointer text-dim text-sm">Filter by values</summary>
      <Arrangement {...props} />
      <div className="grid grid-cols-[repeat(auto-fill,minmax(230px,1fr))] gap-3 py-2">
        {axes.map((axis) => {
          const brush = own(brushes, axis.name);
          const { [axis.name]: _, ...rest } = brushes;
          if (axis.texts) {
            const among = brush && "among" in brush ? brush.among : [];
            return (
              <fieldset key={axis.name} className="flex min-w-0 flex-wrap items-center gap-x-3">
                <legend className="font-medium">{axis.title}</legend>
                {axis.texts.map((text) => (
                  <label key={text} className="flex min-h-6 min-w-0 items-center gap-1.5">
                    <input
                      type="checkbox"
                      className="size-4 accent-(--accent)"
                      checked={among.includes(text)}
                      onChange={(event) => {
                        const now = event.target.checked ? [...among, text] : among.filter((each) => each !== text);
                        onBrush(now.length ? { ...rest, [axis.name]: { among: now } } : rest);
                      }}
                    />
                    <span className="truncate">{visible(text)}</span>
                  </label>
                ))}
              </fieldset>
            );
          }
          const range = brush && "from" in brush ? brush : { from: axis.low, to: axis.high };
          const set = (changed: Partial<typeof range>) => {
            const now = { ...range, ...changed };
            onBrush(now.from <= axis.low && now.to >= axis.high ? rest : { ...rest, [axis.name]: now });
          };
          return (
            <fieldset key={axis.name} className="flex min-w-0 items-center gap-1.5">
              <legend className="font-medium">{axis.title}</legend>
              {(["from", "to"] as const).map((end) => (
                <label key={end} htmlFor={`${id}-${axis.name}-${end}`} className="flex items-center gap-1.5">
                  {end}
                  <input
                    // What is brushed elsewhere stands here, too.
                    key={range[end]}
                    id={`${id}-${axis.name}-${end}`}
                    aria-label={`${axis.title} ${end}`}
                    type="number"
                    step="any"
                    className={`${FIELD} w-24`}
                    defaultValue={range[end]}
                    onBlur={(event) => {
                      const typed = event.target.valueAsNumber;
                      if (Number.isFinite(typed) && typed !== range[end]) set({ [end]: typed });
                    }}
                    onKeyDown={(event) => event.key === "Enter" && event.currentTarget.blur()}
                  />
                </label>
              ))}
            </fieldset>
          );
        })}
      </div>
    </details>
  );
}

/** The order and the scales of axes, without a mouse. */
function Arrangement({ axes, onOrder, onFlip }: Pick<ParallelProps, "axes" | "onOrder" | "onFlip">) {
  const names = axes.map((axis) => axis.name);
  return (
    <ol aria-label="Axes from left to right" className="flex flex-wrap gap-x-4 gap-y-1 pt-2">
      {axes.map((axis, place) => {
        const [before, after] = [names[place - 1], names[place + 1]];
        return (
          <li key={axis.name} className="inline-flex min-h-7 min-w-0 items-center gap-1">
            <span className="max-w-32 truncate font-medium" title={axis.title}>
              {axis.title}
            </span>
            <Button
              aria-label={`${axis.title} to the left`}
              disabled={before === undefined}
              className="min-w-7 px-1"
              onClick={() => before !== undefined && onOrder(placedBefore(names, axis.name, before))}
            >
              ←
            </Button>
            <Button
              aria-label={`${axis.title} to the right`}
              disabled={after === undefined}
              className="min-w-7 px-1"
              onClick={() => after !== undefined && onOrder(placedBefore(names, axis.name, after))}
            >
              →
            </Button>
            {mayBeLog(axis) && (
              <label className="inline-flex items-center gap-1">
                <input
                  type="checkbox"
                  className="size-4 accent-(--accent)"
                  aria-label={`${axis.title} logarithmic`}
                  checked={axis.log}
                  onChange={() => onFlip(axis.name)}
                />
                log
              </label>
            )}
          </li>
        );
      })}
    </ol>
  );
}
