import type uPlot from "uplot";
import { expect, test } from "vitest";
import { drawn, nearest, smoothed, span, summaries } from "./lines";
import { heat, looksOf } from "./palette";
import { LINEAR, LOGARITHMIC, numbersOf, within } from "./scales";

test("a smoothed line begins at its first value, keeps gaps, and comes near a value that stays", () => {
  const line = smoothed([4, null, 4, 4], 0.9);
  expect(line[0]).toBeCloseTo(4);
  expect(line[1]).toBeNull();
  expect(line[3]).toBeCloseTo(4);
  expect(smoothed([0, 10], 0.5)[1]).toBeCloseTo(20 / 3);
  expect(smoothed([1, 2], 0)).toEqual([1, 2]);
});

test("smoothing keeps the raw line, faint and behind", () => {
  const line = { trial: 7, x: [1, 2, 3], y: [1, 9, 1] };
  expect(drawn([line], 0)).toEqual([{ ...line, faint: false }]);
  const both = drawn([line], 0.6);
  expect(both.map((each) => each.faint)).toEqual([true, false]);
  expect(both[0]?.y).toEqual([1, 9, 1]);
  expect(both[1]?.y).not.toEqual([1, 9, 1]);
});

test("trials are told apart by colour, and by dashes only when all colours are taken", () => {
  // Whatever their numbers are: these would have had one colour, or dashes.
  for (const ids of [
    [12, 13, 14, 15],
    [7, 17, 27, 37],
    [41, 44, 48, 98, 107, 113, 121, 137, 149, 150],
  ]) {
    const looks = [...looksOf(ids, "light").values()];
    expect(looks.every((look) => look.dash === undefined)).toBe(true);
    expect(new Set(looks.map((look) => look.colour)).size).toBe(ids.length);
  }
  const fifty = [...looksOf(range(1, 50), "dark").values()];
  expect(fifty.slice(0, 10).every((look) => look.dash === undefined)).toBe(true);
  expect(fifty.slice(10).every((look) => look.dash !== undefined)).toBe(true);
  expect(new Set(fifty.map((look) => JSON.stringify(look))).size).toBe(50);
  expect(looksOf(range(1, 80), "light").size).toBe(80);
});

test("few trials have no two colours that look alike", () => {
  for (const [one, other] of [
    [1, 4],
    [10, 15],
    [5, 9],
    [14, 21],
  ] as const) {
    const shown = [...looksOf([one, other], "light").values()].map((look) => look.colour);
    for (const alike of [
      ["#b45f00", "#c43c00"],
      ["#0067a3", "#3d7fc4"],
      ["#3d7fc4", "#4a5a6a"],
    ]) {
      expect(alike.every((colour) => shown.includes(colour))).toBe(false);
    }
  }
});

test("a trial keeps its look when later ones join", () => {
  const alone = looksOf([7], "light").get(7);
  expect(looksOf([7, 12, 17, 99], "light").get(7)).toEqual(alone);
  expect(looksOf([3, 7], "light").get(7)).toEqual(alone);
  expect(looksOf([7], "dark").get(7)?.colour).not.toBe(alone?.colour);
});

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, place) => from + place);
}

test("the nearest place of rising numbers", () => {
  expect([0, 4, 6, 100].map((to) => nearest([1, 5, 9], to))).toEqual([0, 1, 1, 2]);
  expect(nearest([5], 77)).toBe(0);
});

test("what lines come to, without what is no number", () => {
  const lines = [
    { trial: 1, x: [1, 2, 3], y: [3, null, 2] },
    { trial: 2, x: [1], y: [null] },
  ];
  expect(summaries(lines)).toEqual([{ trial: 1, least: 2, greatest: 3, last: 2 }]);
  expect(span(lines.map(({ y }) => y))).toEqual([2, 3]);
  expect(span([])).toBeUndefined();
});

test("the colours of bad and good differ", () => {
  expect(heat(0, "light")).toBe("rgb(196 60 0)");
  expect(heat(9, "light")).toBe(heat(1, "light"));
});

test("numbers along an axis have as many digits as tell them apart", () => {
  expect(numbersOf([0, 0.5, 1])).toEqual(["0", "0.5", "1"]);
  expect(numbersOf([0.98765, 0.98766, 0.98767])).toEqual(["0.98765", "0.98766", "0.98767"]);
  expect(numbersOf([1_234_500, 1_234_600, null])).toEqual(["1.2345M", "1.2346M", ""]);
});

test("a logarithmic scale between chosen values has ends above zero, whatever is drawn yet", () => {
  const ends = (
    log: boolean,
    low: number | undefined,
    high: number | undefined,
    from: number | null,
    to: number | null,
  ) => {
    const { range } = within(log ? LOGARITHMIC : LINEAR, low, high);
    return typeof range === "function" ? range({} as uPlot, from as number, to as number, "y") : range;
  };
  expect(ends(true, undefined, 4.5, null, null)).toEqual([0.45, 4.5]);
  expect(ends(true, undefined, 4.5, 0, 9)).toEqual([0.45, 4.5]);
  expect(ends(true, undefined, 4.5, 0.1, 9)).toEqual([0.1, 4.5]);
  expect(ends(true, 2, undefined, null, null)).toEqual([2, 20]);
  expect(ends(true, -1, -0.5, 0.1, 9)).toBeUndefined();
  expect(ends(false, undefined, 4.5, null, null)).toEqual([0, 4.5]);
  expect(ends(false, 9, undefined, 1, 4)).toEqual([9, 10]);
});
