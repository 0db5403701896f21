import { describe, expect, it } from "vitest";
import { piled } from "../charts/bars";
import type { Share } from "../services/usage";
import { isDay } from "./address";
import { apart, daysOf, labelOf, periodOf, sorted, spanOf, stacks, summed, usual, weekly } from "./sums";

function share(begins: string, used: Record<string, number>, waited: Record<string, number> = {}, total = 0): Share {
  const all = Object.values(used).reduce((sum, each) => sum + each, 0);
  return {
    begins,
    total: total || all,
    waitedTotal: Object.values(waited).reduce((sum, each) => sum + each, 0),
    used,
    waited,
  };
}

describe("what is asked for", () => {
  it("is the last 30 days where the address says nothing, and always the right way round", () => {
    expect(spanOf({}, "2026-11-25")).toEqual({ from: "2026-10-27", to: "2026-11-25" });
    expect(spanOf({ from: "2026-11-20" }, "2026-11-25")).toEqual({ from: "2026-11-20", to: "2026-11-25" });
    expect(spanOf({ from: "2026-12-20" }, "2026-11-25")).toEqual({ from: "2026-12-20", to: "2026-12-20" });
    expect(spanOf({ to: "2026-03-01" }, "2026-11-25").from).toBe("2026-01-31");
    expect(spanOf({ from: "2026-05-02", to: "2026-05-01" }, "2026-11-25")).toEqual({
      from: "2026-05-01",
      to: "2026-05-02",
    });
  });

  it("has names for what is asked for most", () => {
    expect(usual("2026-03-31")["Last month"]).toEqual({ from: "2026-02-01", to: "2026-02-28" });
    expect(usual("2026-01-15")["Last month"]).toEqual({ from: "2025-12-01", to: "2025-12-31" });
    expect(usual("2026-11-25")["12 months"]).toEqual({ from: "2025-12-01", to: "2026-11-25" });
    expect(usual("2026-12-25")["12 months"]?.from).toBe("2026-01-01");
    expect(daysOf(usual("2026-11-25")["7 days"] ?? { from: "", to: "" })).toBe(7);
  });

  it("is made of days that there are", () => {
    expect(["2026-02-28", "2028-02-29"].every(isDay)).toBe(true);
    expect(["2026-02-29", "2026-13-01", "1969-12-31", "9999-01-01", "2026-2-1", "", 7, undefined].some(isDay)).toBe(
      false,
    );
  });

  it("is shown in as many bars as can be told apart", () => {
    expect(periodOf({ from: "2026-10-12", to: "2026-11-25" })).toBe("day");
    expect(periodOf({ from: "2026-10-11", to: "2026-11-25" })).toBe("week");
    expect(periodOf({ from: "2026-01-01", to: "2026-11-25" })).toBe("month");
  });
});

describe("what it comes to", () => {
  const days = [
    share("2026-11-21", { ada: 7200 }, { bob: 1800 }),
    share("2026-11-22", { ada: 3600, __proto__x: 3600 }),
    share("2026-11-23", { bob: 3600 }, { ada: 60 }),
  ];

  it("is summed by name with its share of all, what was only waited for too", () => {
    const { used, waited, rows } = summed(days);
    expect([used, waited]).toEqual([5, 1860 / 3600]);
    expect(rows.map((row) => [row.name, row.used, row.share])).toEqual([
      ["ada", 3, 0.6],
      ["__proto__x", 1, 0.2],
      ["bob", 1, 0.2],
    ]);
    expect(rows.find((row) => row.name === "bob")?.waited).toBe(0.5);
    // What counts for several names counts once in all.
    expect(summed([share("2026-11-21", { x: 3600, y: 3600 }, {}, 3600)]).rows.map((row) => row.share)).toEqual([1, 1]);
    expect(summed([])).toEqual({ used: 0, waited: 0, rows: [] });
  });

  it("takes any name, those of an object's own too", () => {
    const odd = JSON.parse('{"__proto__": 3600, "constructor": 7200}');
    expect(summed([share("2026-11-21", odd)]).rows.map((row) => [row.name, row.used])).toEqual([
      ["constructor", 2],
      ["__proto__", 1],
    ]);
    expect(weekly([share("2026-11-21", odd), share("2026-11-22", odd)])[0]?.used.constructor).toBe(14400);
  });

  it("is sorted by any column, either way", () => {
    const { rows } = summed(days);
    expect(sorted(rows, "waited").map((row) => row.name)).toEqual(["__proto__x", "ada", "bob"]);
    expect(sorted(rows, "-name", (name) => (name === "ada" ? "zeno" : name))[0]?.name).toBe("ada");
  });

  it("has weeks that begin on Mondays", () => {
    const weeks = weekly(days);
    expect(weeks.map((week) => [week.begins, week.total, week.used.ada])).toEqual([
      ["2026-11-16", 14400, 10800],
      ["2026-11-23", 3600, undefined],
    ]);
    expect(weeks[1]?.waitedTotal).toBe(60);
  });

  it("is stacked by the names that are shown, and all others together", () => {
    expect(stacks(days, "used", ["ada"])).toEqual({ names: [[2, 1, 0]], others: [0, 1, 1] });
    expect(stacks(days, "waited", ["ada", "bob"]).others).toBeUndefined();
    expect(apart(["ada", "ada", "a".repeat(30)])).toEqual(["ada", "ada (2)", `${"a".repeat(27)}…`]);
    // Each bar with those below it: the first is on top.
    const steps = [0, 1];
    const lines = [
      { name: "a", steps, values: [1, null] },
      { name: "b", steps, values: [2, 3] },
    ];
    expect(piled(lines)).toEqual([steps, [3, 3], [2, 3]]);
    expect(["2026-11-02", "2026-01"].map(labelOf)).toEqual(["Nov 2", "Jan 2026"]);
  });
});
