import { expect, test } from "vitest";
import { METRIC, type SearchedTrial } from "../services/searching";
import {
  type Axis,
  axesOf,
  brushAt,
  brushesOf,
  isIn,
  shareOf,
  stretchOf,
  triedOf,
  valueAt,
  writtenBrushes,
} from "./axes";

function trial(id: number, hparams: Record<string, unknown>, metric: number | null): SearchedTrial {
  return { id, state: "STATE_COMPLETED", hparams, metric };
}

const TRIALS = [
  trial(1, { lr: 0.00001, opt: "adam", size: 10, same: 1 }, 0.5),
  trial(2, { lr: 0.1, opt: "sgd", size: 20, same: 1 }, 0.25),
  trial(3, { lr: 0.001, opt: "lion", same: 1 }, null),
];

function axis(name: string): Axis {
  const found = axesOf(TRIALS, "loss", ["size"], 10).find((each) => each.name === name);
  if (!found) throw new Error(`no axis ${name}`);
  return found;
}

test("what varies has an axis, the most important first, the metric last", () => {
  expect(axesOf(TRIALS, "loss", ["size"], 10).map((each) => each.title)).toEqual(["size", "lr", "opt", "loss"]);
  expect(axesOf(TRIALS, "loss", ["opt"], 1).map((each) => each.title)).toEqual(["opt", "loss"]);
  expect(axis("lr").log).toBe(true);
  expect(axis("size").log).toBe(false);
  expect(axis("opt").texts).toEqual(["adam", "lion", "sgd"]);
});

test("places on an axis and back", () => {
  expect(shareOf(axis("lr"), 0.001)).toBeCloseTo(0.5);
  expect(valueAt(axis("lr"), 0.5)).toBeCloseTo(0.001);
  expect(shareOf(axis("opt"), "lion")).toBe(0.5);
  expect(shareOf(axis("opt"), "other")).toBeUndefined();
  expect(shareOf(axis("size"), undefined)).toBeUndefined();
});

test("a brush leaves what lies in it", () => {
  const low = brushAt(axis("lr"), 0.6, 0.2);
  const brushes = { lr: low as { from: number; to: number } };
  expect(TRIALS.filter((each) => isIn(each, brushes)).map((each) => each.id)).toEqual([3]);
  expect(stretchOf(axis("lr"), brushes.lr)?.map((share) => Number(share.toFixed(3)))).toEqual([0.2, 0.6]);
  expect(brushAt(axis("opt"), 0, 0.6)).toEqual({ among: ["adam", "lion"] });
  expect(brushAt(axis("opt"), 0.6, 0.7)).toBeUndefined();
  expect(brushAt(axis("lr"), 0.3, 0.301)).toBeUndefined();
  // Who has no metric is not in a range of it.
  expect(TRIALS.filter((each) => isIn(each, { [METRIC]: { from: 0, to: 1 } })).length).toBe(2);
});

test("a name that each object has is a hyperparameter where it was tried alone", () => {
  expect(triedOf(TRIALS[0] as SearchedTrial, "constructor")).toBeUndefined();
  expect(Object.keys(brushesOf(JSON.parse('{"__proto__": [0, 1]}')) ?? {})).toEqual(["__proto__"]);
});

test("brushes in an address", () => {
  const brushes = { lr: { from: 1, to: 2 }, opt: { among: ["a", "b"] } };
  expect(brushesOf(writtenBrushes(brushes))).toEqual(brushes);
  for (const wrong of [undefined, "x", [], { lr: 5 }, { lr: [1] }, { lr: [1, "x"] }])
    expect(brushesOf(wrong)).toBeUndefined();
});
