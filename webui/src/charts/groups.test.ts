import { describe, expect, it } from "vitest";
import { grouped, spreadOf, together } from "./groups";

describe("trials of one group", () => {
  const lines = [
    { trial: 1, x: [0, 10, 20], y: [0, 10, 20] },
    { trial: 2, x: [0, 20], y: [2, 22] },
  ];

  it("are one line of means, also between the points of some", () => {
    const { line, band } = together(1, lines, "range");
    expect(line).toEqual({ trial: 1, x: [0, 10, 20], y: [1, 11, 21] });
    expect([band.low, band.high]).toEqual([
      [0, 10, 20],
      [2, 12, 22],
    ]);
    const std = together(1, lines, "std").band;
    expect(std.high[0]).toBeCloseTo(1 + Math.SQRT2);
    expect(std.low[0]).toBeCloseTo(1 - Math.SQRT2);
  });

  it("count where they have a value, and nothing is made up in gaps or beyond their ends", () => {
    const some = [
      { trial: 1, x: [0, 1, 2, 3], y: [5, null, 5, 5] },
      { trial: 2, x: [2], y: [7] },
    ];
    const { line, band } = together(1, some, "std");
    expect(line.y).toEqual([5, null, 6, 5]);
    expect(band.low[1]).toBeNull();
    expect(band.low[3]).toBe(5);
  });

  it("are found by what they share", () => {
    const trial = (id: number, lr: string, seed: string) => ({
      id,
      settings: new Map([
        ["lr", lr],
        ["seed", seed],
      ]),
    });
    const trials = [trial(3, "0.1", "1"), trial(5, "0.2", "1"), trial(4, "0.1", "2")];
    expect(grouped(trials, ["lr"])).toEqual([
      { id: 3, trials: [3, 4], values: ["0.1"] },
      { id: 5, trials: [5], values: ["0.2"] },
    ]);
    expect(grouped(trials, ["lr", "none"])[0]?.values).toEqual(["0.1", undefined]);
  });

  it("spread as samples do", () => {
    expect(spreadOf([1, 2, 3, 4])).toEqual({ count: 4, mean: 2.5, std: Math.sqrt(5 / 3), least: 1, greatest: 4 });
    expect(spreadOf([7])?.std).toBe(0);
    expect(spreadOf([])).toBeUndefined();
  });
});
