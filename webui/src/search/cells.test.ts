import { expect, test } from "vitest";
import type { SearchedTrial } from "../services/searching";
import { arrangedAxes, axesOf, placedBefore } from "./axes";
import { cellsOf } from "./cells";

const trials = Array.from({ length: 40 }, (_, n) => ({
  id: n,
  metric: n < 39 ? n : null,
  hparams: { lr: 10 ** (-4 + n / 10), optimizer: n % 2 ? "adam" : "sgd", depth: n % 3 },
})) as unknown as SearchedTrial[];
const axes = axesOf(trials, "loss", ["lr"], 5);
const axis = (name: string) => axes.find((each) => each.name === name) as (typeof axes)[number];

test("trials lie in cells of two hyperparameters, with the mean of their metric", () => {
  const { columns, rows, cells } = cellsOf(trials, [axis("lr"), axis("optimizer")], String);
  expect([columns.length, rows.map((each) => each.title)]).toEqual([8, ["adam", "sgd"]]);
  expect(cells.reduce((sum, cell) => sum + cell.trials, 0)).toBe(39);
  const first = cells.find((cell) => cell.column === 0 && cell.row === 1);
  expect(first).toEqual({ column: 0, row: 1, trials: 3, mean: 2 });
  expect(columns[0]?.brush).toMatchObject({ from: expect.closeTo(1e-4, 8) });
});

test("an axis of few values has a cell for each", () => {
  const { columns, cells } = cellsOf(trials, [axis("depth"), axis("optimizer")], String);
  expect(columns.map((each) => each.brush)).toEqual([0, 1, 2].map((value) => ({ from: value, to: value })));
  expect(cells).toHaveLength(6);
});

test("axes stand as somebody arranged them, and have the scale that was asked for", () => {
  const names = axes.map((each) => each.name);
  expect(names[0]).toBe("lr");
  const order = placedBefore(names, "", "lr");
  expect(arrangedAxes(axes, order, []).map((each) => each.name)).toEqual(["", ...names.slice(0, -1)]);
  const flipped = arrangedAxes(axes, [], ["lr", "optimizer", "depth"]);
  expect(flipped.find((each) => each.name === "lr")?.log).toBe(false);
  expect(flipped.filter((each) => each.log)).toEqual([]);
  expect(placedBefore(["a", "b"], "x", "a")).toEqual(["a", "b"]);
});
