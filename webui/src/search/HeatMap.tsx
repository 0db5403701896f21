/** The metric over two hyperparameters: cells from bad to good on a canvas of our own; a click narrows to one. */

import { type MouseEvent, useEffect, useMemo, useRef, useState } from "react";
import { Figure } from "../charts/Figure";
import { heat } from "../charts/palette";
import { shareBetween } from "../charts/units";
import { count, number } from "../format";
import { type Brushes, METRIC, type SearchedTrial } from "../services/searching";
import { useShownTheme } from "../theme";
import { FIELD } from "../ui/Button";
import type { Axis } from "./axes";
import { type Cell, cellsOf, type Slot } from "./cells";

const HEIGHT = 200;

interface HeatMapProps {
  trials: SearchedTrial[];
  axes: Axis[];
  smallerIsBetter: boolean;
  brushes: Brushes;
  onBrush: (brushes: Brushes) => void;
}

export default function HeatMap({ trials, axes, smallerIsBetter, brushes, onBrush }: HeatMapProps) {
  const tried = axes.filter((axis) => axis.name !== METRIC);
  const metric = axes.find((axis) => axis.name === METRIC);
  const [chosen, choose] = useState<{ across?: string; up?: string }>({});
  const across = tried.find((axis) => axis.name === chosen.across) ?? tried[0];
  const others = tried.filter((axis) => axis !== across);
  const up = others.find((axis) => axis.name === chosen.up) ?? others[0];
  const map = useMemo(() => (across && up ? cellsOf(trials, [across, up], number) : undefined), [trials, across, up]);
  if (!across || !up || !metric || !map || map.cells.length === 0) return null;
  const { columns, rows, cells } = map;
  const pick = (label: string, axis: Axis, of: Axis[], onPick: (name: string) => void) => (
    <select
      aria-label={label}
      className={`${FIELD} max-w-36`}
      value={axis.name}
      onChange={(event) => onPick(event.target.value)}
    >
      {of.map((each) => (
        <option key={each.name} value={each.name}>
          {each.title}
        </option>
      ))}
    </select>
  );
  const best = cells.reduce((a, b) => (b.mean < a.mean === smallerIsBetter ? b : a));
  const nameOf = (cell: Cell) =>
    `${across.title} ${columns[cell.column]?.title}, ${up.title} ${rows[cell.row]?.title}: ${number(cell.mean)}`;
  return (
    <Figure
      title={`${metric.title} by ${across.title} and ${up.title}`}
      summary={`A cell for each of ${columns.length} by ${rows.length} values, coloured by the mean ${metric.title} of its trials. Best is ${nameOf(best)}.`}
      aside={
        <>
          {pick("From left to right", across, tried, (name) => choose({ across: name, up: up.name }))}
          {pick("Upwards", up, others, (name) => choose({ across: across.name, up: name }))}
        </>
      }
      table={() => ({
        head: [across.title, up.title, "Trials", `Mean ${metric.title}`],
        rows: cells.map((cell) => ({
          key: `${cell.column} ${cell.row}`,
          cells: [columns[cell.column]?.title, rows[cell.row]?.title, count(cell.trials), number(cell.mean)],
        })),
      })}
    >
      <Drawing
        columns={columns}
        rows={rows}
        cells={cells}
        smallerIsBetter={smallerIsBetter}
        nameOf={(cell) => `${nameOf(cell)}, ${count(cell.trials)} ${cell.trials === 1 ? "trial" : "trials"}`}
        onCell={(cell) => {
          const [column, row] = [columns[cell.column], rows[cell.row]];
          if (column && row) onBrush({ ...brushes, [across.name]: column.brush, [up.name]: row.brush });
        }}
      />
      <p aria-hidden="true" className="flex justify-between gap-2 px-1 text-dim text-sm">
        <span className="truncate">{columns[0]?.title}</span>
        <span className="truncate">{`${across.title} →, ${up.title} ↑`}</span>
        <span className="truncate">{columns.at(-1)?.title}</span>
      </p>
    </Figure>
  );
}

interface DrawingProps {
  columns: Slot[];
  rows: Slot[];
  cells: Cell[];
  smallerIsBetter: boolean;
  nameOf: (cell: Cell) => string;
  onCell: (cell: Cell) => void;
}

function Drawing({ columns, rows, cells, smallerIsBetter, nameOf, onCell }: DrawingProps) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useShownTheme();
  const [width, setWidth] = useState(0);
  const [pointed, point] = useState<Cell>();
  useEffect(() => {
    const place = frame.current;
    if (!place) return;
    const resized = new ResizeObserver(() => setWidth(place.clientWidth));
    resized.observe(place);
    return () => resized.disconnect();
  }, []);
  useEffect(() => {
    const place = canvas.current;
    const pen = place?.getContext("2d");
    if (!place || !pen || !width) return;
    place.width = width * devicePixelRatio;
    place.height = HEIGHT * devicePixelRatio;
    pen.scale(devicePixelRatio, devicePixelRatio);
    const means = cells.map((cell) => cell.mean);
    const [low, high] = [Math.min(...means), Math.max(...means)];
    const [across, up] = [width / columns.length, HEIGHT / rows.length];
    for (const { column, row, mean } of cells) {
      const share = high === low ? 1 : shareBetween(low, high, mean);
      pen.fillStyle = heat(smallerIsBetter ? 1 - share : share, theme);
      pen.fillRect(column * across + 1, HEIGHT - (row + 1) * up + 1, across - 2, up - 2);
    }
  }, [cells, columns, rows, smallerIsBetter, theme, width]);
  const cellAt = (event: MouseEvent) => {
    const box = (frame.current as HTMLElement).getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * columns.length);
    const row = Math.floor((1 - (event.clientY - box.top) / box.height) * rows.length);
    return cells.find((cell) => cell.column === column && cell.row === row);
  };
  return (
    <>
      <div
        ref={frame}
        aria-hidden="true"
        data-heatmap
        className="relative cursor-pointer border-line border-b border-l bg-sunken"
        style={{ height: HEIGHT }}
        onMouseMove={(event) => point(cellAt(event))}
        onMouseLeave={() => point(undefined)}
        onClick={(event) => {
          const cell = cellAt(event);
          if (cell) onCell(cell);
        }}
      >
        <canvas ref={canvas} className="absolute inset-0 size-full" />
      </div>
      <p aria-hidden="true" className="h-5 truncate px-1 text-dim text-sm">
        {pointed ? nameOf(pointed) : ""}
      </p>
    </>
  );
}
