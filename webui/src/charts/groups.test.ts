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

  it("spread as they do whatever their size", () => {
    expect(spreadOf([1e308, 1.5e308])?.mean).toBeCloseTo(1.25e308, -300);
    for (const size of [1e308, 1e200, 1e-200, 5e-324 * 1024]) {
      const spread = spreadOf([size, size, -size, -size]);
      expect(spread?.mean).toBe(0);
      expect((spread?.std ?? 0) / size).toBeCloseTo(Math.sqrt(4 / 3));
    }
    const line = (trial: number, value: number) => ({ trial, x: [0], y: [value] });
    const { line: mean, band } = together(1, [line(1, 1.7e308), line(2, 1e307), line(3, 1.7e308)], "std");
    for (const value of [mean.y[0], band.low[0], band.high[0]]) expect(Number.isFinite(value)).toBe(true);
  });
});
