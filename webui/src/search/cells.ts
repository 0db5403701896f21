/** The metric over two hyperparameters at once: trials in cells. Pure. */

import type { SearchedTrial } from "../services/searching";
import { visible } from "../visible";
import { type Axis, shareOf, triedOf, valueAt } from "./axes";

/** Cells along an axis of more values than that are stretches of it. */
const MAX_CELLS = 8;

/** A row or a column of cells: some values, or all between two. */
export interface Slot {
  title: string;
  /** As a brush has it. */
  brush: { from: number; to: number } | { among: string[] };
}

export interface Cell {
  column: number;
  row: number;
  trials: number;
  mean: number;
}

interface Slots {
  slots: Slot[];
  of: (trial: SearchedTrial) => number | undefined;
}

function slotsOf(axis: Axis, trials: readonly SearchedTrial[], written: (value: number) => string): Slots {
  const { texts } = axis;
  if (texts) {
    const of = (trial: SearchedTrial) => placeIn(texts, triedOf(trial, axis.name), String);
    return { slots: texts.map((text) => ({ title: visible(text), brush: { among: [text] } })), of };
  }
  const values = trials.map((trial) => triedOf(trial, axis.name)).filter((value) => typeof value === "number");
  const distinct = [...new Set(values)].sort((a, b) => a - b);
  if (distinct.length <= MAX_CELLS) {
    const slots = distinct.map((value) => ({ title: written(value), brush: { from: value, to: value } }));
    return { slots, of: (trial) => placeIn(distinct, triedOf(trial, axis.name), Number) };
  }
  const slots = Array.from({ length: MAX_CELLS }, (_, place): Slot => {
    const [from, to] = [valueAt(axis, place / MAX_CELLS), valueAt(axis, (place + 1) / MAX_CELLS)];
    return { title: `${written(from)} to ${written(to)}`, brush: { from, to } };
  });
  const of = (trial: SearchedTrial) => {
    const share = shareOf(axis, triedOf(trial, axis.name));
    return share === undefined ? undefined : Math.min(MAX_CELLS - 1, Math.max(0, Math.floor(share * MAX_CELLS)));
  };
  return { slots, of };
}

function placeIn<T>(values: readonly T[], value: unknown, as: (value: unknown) => T): number | undefined {
  const place = value === undefined ? -1 : values.indexOf(as(value));
  return place < 0 ? undefined : place;
}

/** Cells that hold a trial with a metric: how many, and their mean. */
export function cellsOf(
  trials: readonly SearchedTrial[],
  [across, up]: readonly [Axis, Axis],
  written: (value: number) => string,
): { columns: Slot[]; rows: Slot[]; cells: Cell[] } {
  const [columns, rows] = [slotsOf(across, trials, written), slotsOf(up, trials, written)];
  const cells = new Map<string, Cell>();
  for (const trial of trials) {
    const [column, row] = [columns.of(trial), rows.of(trial)];
    if (column === undefined || row === undefined || typeof trial.metric !== "number") continue;
    const cell = cells.get(`${column} ${row}`) ?? { column, row, trials: 0, mean: 0 };
    cell.mean += (trial.metric - cell.mean) / (cell.trials + 1);
    cell.trials += 1;
    cells.set(`${column} ${row}`, cell);
  }
  return { columns: columns.slots, rows: rows.slots, cells: [...cells.values()] };
}
