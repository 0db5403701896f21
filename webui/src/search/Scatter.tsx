/** The metric of each trial against one hyperparameter, or against each of them in a small chart of its own. */

import { type MouseEvent, useEffect, useMemo, useRef, useState } from "react";
import { Figure } from "../charts/Figure";
import { hover, useHovered } from "../charts/hovered";
import { GREY, heat } from "../charts/palette";
import { number } from "../format";
import { type Brushes, METRIC, type SearchedTrial } from "../services/searching";
import { useShownTheme } from "../theme";
import { FIELD } from "../ui/Button";
import { visible } from "../visible";
import { type Axis, isIn, shareOf, triedOf } from "./axes";

const HEIGHT = 200;
const SMALL = 110;
/** The value for all of them. */
const EVERY = "*";
const EDGE = 12;
const NEAR_PX = 12;

interface ScatterProps {
  trials: SearchedTrial[];
  axes: Axis[];
  brushes: Brushes;
}

interface Dot {
  trial: SearchedTrial;
  x: number;
  y: number;
}

export default function Scatter({ trials, axes, brushes }: ScatterProps) {
  const tried = axes.filter((axis) => axis.name !== METRIC);
  const metric = axes.find((axis) => axis.name === METRIC);
  const [chosen, choose] = useState<string>();
  const axis = tried.find((each) => each.name === chosen) ?? tried[0];
  if (!axis || !metric) return null;
  const select = (
    <select
      aria-label="Hyperparameter"
      className={`${FIELD} max-w-48`}
      value={chosen === EVERY ? EVERY : axis.name}
      onChange={(event) => choose(event.target.value)}
    >
      {tried.map((each) => (
        <option key={each.name} value={each.name}>
          {each.title}
        </option>
      ))}
      {tried.length > 1 && <option value={EVERY}>All of them</option>}
    </select>
  );
  if (chosen === EVERY) {
    return (
      <Figure
        title={`${metric.title} by each hyperparameter`}
        summary={`A chart for each of ${tried.map((each) => each.title).join(", ")}: a dot for each trial, ${metric.title} upwards, from ${number(metric.low)} to ${number(metric.high)}.`}
        aside={select}
        table={() => ({
          head: ["Trial", ...tried.map((each) => each.title), metric.title],
          rows: trials.map((trial) => ({
            key: trial.id,
            cells: [trial.id, ...tried.map((each) => shown(triedOf(trial, each.name))), number(trial.metric)],
          })),
        })}
      >
        <div className="grid grid-cols-[repeat(auto-fill,minmax(min(200px,100%),1fr))] gap-3" data-scatters>
          {tried.map((each) => (
            <div key={each.name} className="min-w-0">
              <Dots trials={trials} axis={each} metric={metric} brushes={brushes} height={SMALL} />
            </div>
          ))}
        </div>
      </Figure>
    );
  }
  return (
    <Figure
      title={`${metric.title} by ${axis.title}`}
      summary={`A dot for each trial: ${axis.title} from left to right${axis.log ? ", logarithmic" : ""}, ${metric.title} upwards, from ${number(metric.low)} to ${number(metric.high)}.`}
      aside={select}
      table={() => ({
        head: ["Trial", axis.title, metric.title],
        rows: trials.map((trial) => ({
          key: trial.id,
          cells: [trial.id, shown(triedOf(trial, axis.name)), number(trial.metric)],
        })),
      })}
    >
      <Dots trials={trials} axis={axis} metric={metric} brushes={brushes} />
    </Figure>
  );
}

function shown(value: number | string | undefined): string {
  return typeof value === "number" ? number(value) : visible(value ?? "–");
}

interface DotsProps {
  trials: SearchedTrial[];
  axis: Axis;
  metric: Axis;
  brushes: Brushes;
  height?: number;
}

function Dots({ trials, axis, metric, brushes, height = HEIGHT }: DotsProps) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useShownTheme();
  const hovered = useHovered();
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const place = frame.current;
    if (!place) return;
    const resized = new ResizeObserver(() => setWidth(place.clientWidth));
    resized.observe(place);
    return () => resized.disconnect();
  }, []);
  const dots = useMemo(
    () =>
      trials.flatMap((trial): Dot[] => {
        const x = shareOf(axis, triedOf(trial, axis.name));
        const y = shareOf(metric, triedOf(trial, METRIC));
        if (x === undefined || y === undefined) return [];
        return [{ trial, x: EDGE + x * (width - 2 * EDGE), y: EDGE + (1 - y) * (height - 2 * EDGE) }];
      }),
    [trials, axis, metric, width, height],
  );
  useEffect(() => {
    const place = canvas.current;
    const pen = place?.getContext("2d");
    if (!place || !pen || !width) return;
    place.width = width * devicePixelRatio;
    place.height = height * devicePixelRatio;
    pen.scale(devicePixelRatio, devicePixelRatio);
    // The best are first: they are drawn last.
    [...dots].reverse().forEach((dot, place) => {
      const isMeant = isIn(dot.trial, brushes);
      pen.fillStyle = isMeant ? heat(place / Math.max(1, dots.length - 1), theme) : GREY[theme];
      pen.globalAlpha = isMeant ? 0.85 : 0.3;
      pen.beginPath();
      pen.arc(dot.x, dot.y, 3.5, 0, 2 * Math.PI);
      pen.fill();
    });
  }, [dots, brushes, theme, width, height]);
  const mark = dots.find((dot) => dot.trial.id === hovered);
  const onMove = (event: MouseEvent) => {
    const box = (frame.current as HTMLElement).getBoundingClientRect();
    let [distance, closest]: [number, number | undefined] = [NEAR_PX, undefined];
    for (const dot of dots) {
      const away = Math.hypot(dot.x - event.clientX + box.left, dot.y - event.clientY + box.top);
      if (away < distance) [distance, closest] = [away, dot.trial.id];
    }
    hover(closest);
  };
  return (
    <>
      <div
        ref={frame}
        aria-hidden="true"
        className="relative border-line border-b border-l"
        style={{ height }}
        onMouseMove={onMove}
        onMouseLeave={() => hover(undefined)}
      >
        <canvas ref={canvas} className="absolute inset-0 size-full" />
        {mark && (
          <span
            className="pointer-events-none absolute size-3 -translate-x-1/2 -translate-y-1/2 rounded-full border-2 border-text"
            style={{ left: mark.x, top: mark.y }}
          />
        )}
        <span className="absolute top-0 left-1 text-dim text-sm">{number(metric.high)}</span>
        <span className="absolute bottom-0 left-1 text-dim text-sm">{number(metric.low)}</span>
        {mark && (
          <span className="absolute top-0 right-1 text-sm">
            trial {mark.trial.id}: {number(mark.trial.metric)}
          </span>
        )}
      </div>
      <p aria-hidden="true" className="flex justify-between gap-2 px-1 text-dim text-sm">
        <span>{axis.texts ? visible(axis.texts[0] ?? "") : number(axis.low)}</span>
        <span>{axis.log ? `${axis.title}, logarithmic` : axis.title}</span>
        <span>{axis.texts ? visible(axis.texts.at(-1) ?? "") : number(axis.high)}</span>
      </p>
    </>
  );
}
