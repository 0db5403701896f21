import { describe, expect, it } from "vitest";
import { hyperparameterOf, metricOf, moved, placedOf, written } from "./columns";
import type { Experiment } from "./experiments";

const placed = placedOf(["id@64!", "name@260!", "validation.a/b c@d.last@100", "hp.lr@90"]);

describe("columns that are shown", () => {
  it("are read as they are written, whatever they are called", () => {
    expect(placed.map(written)).toEqual(["id@64!", "name@260!", "validation.a/b c@d.last@100", "hp.lr@90"]);
    expect(placedOf(["x", "a@9999", "a@50", 3, "@5"])).toEqual([{ id: "a", width: 800, pinned: false }]);
  });

  it("stand pinned ones first", () => {
    expect(placedOf(["a@50", "b@50!"]).map((each) => each.id)).toEqual(["b", "a"]);
    expect(moved(placed, "hp.lr", "id").map(written)[0]).toBe("hp.lr@90!");
    expect(moved(placed, "id", "hp.lr").map(written).at(-1)).toBe("id@64");
    expect(moved(placed, "id", "none")).toEqual(placed);
  });

  it("hold what the best trial reported, and what was configured", () => {
    const row = {
      best: { summaryMetrics: { validation_metrics: { "a.b": { last: 0.5, min: "NaN" } } } },
      hyperparameters: {
        lr: { type: "log", base: 10, minval: -3, maxval: -1 },
        net: { depth: { type: "const", val: 3 }, act: { type: "categorical", vals: ["relu", 2] } },
      },
    } as unknown as Experiment;
    expect(metricOf(row.best?.summaryMetrics, "validation.a.b.last")).toBe(0.5);
    expect(metricOf(row.best?.summaryMetrics, "training.a.b.last")).toBeUndefined();
    expect(hyperparameterOf(row, "hp.lr")).toBe("0.001 … 0.1");
    expect(hyperparameterOf(row, "hp.net.depth")).toBe(3);
    expect(hyperparameterOf(row, "hp.net.act")).toBe("relu, 2");
    expect(hyperparameterOf(row, "hp.net.none.x")).toBeUndefined();
  });

  it("hold nothing that an object has by itself", () => {
    const row = { hyperparameters: { lr: 1 } } as unknown as Experiment;
    expect(hyperparameterOf(row, "hp.constructor.name")).toBeUndefined();
    expect(metricOf({ validation_metrics: { loss: { last: 1 } } }, "validation.constructor.name")).toBeUndefined();
    expect(metricOf({}, "constructor.prototype.x")).toBeUndefined();
  });
});
