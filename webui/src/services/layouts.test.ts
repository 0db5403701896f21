import { describe, expect, it } from "vitest";
import { arranged, PLAIN, readLayout, stepped, toggledIn } from "./layouts";

const metrics = ["acc", "loss", "lr", "f1"].map((name) => ({ name }));
const names = (layout: typeof PLAIN) => arranged(metrics, layout).map((each) => each.name);

describe("a layout of charts", () => {
  it("has pinned ones first, then those that were moved, then as they come", () => {
    expect(names(PLAIN)).toEqual(["acc", "loss", "lr", "f1"]);
    expect(names({ ...PLAIN, pinned: ["f1"], order: ["lr", "acc"] })).toEqual(["f1", "lr", "acc", "loss"]);
  });

  it("moves one by one place", () => {
    const layout = stepped(PLAIN, names(PLAIN), "lr", -1);
    expect(names(layout)).toEqual(["acc", "lr", "loss", "f1"]);
    expect(stepped(layout, names(layout), "acc", -1)).toBe(layout);
    const pinned = { ...PLAIN, pinned: ["f1", "lr"] };
    expect(names(stepped(pinned, names(pinned), "lr", -1))).toEqual(["lr", "f1", "acc", "loss"]);
    expect(toggledIn(["a"], "a")).toEqual([]);
  });

  it("limits a metric whatever it is called", () => {
    const kept = JSON.parse('{"ranges": {"__proto__": {"low": 1}}}');
    expect(Object.entries(readLayout(kept).ranges)).toEqual([["__proto__", { low: 1 }]]);
  });

  it("is read as far as it can be", () => {
    expect(
      readLayout({ size: "huge", pinned: ["a", 3], ranges: { a: { low: 0, high: "x" }, b: {} }, smooth: 2 }),
    ).toEqual({
      ...PLAIN,
      size: undefined,
      pinned: ["a"],
      ranges: { a: { low: 0 } },
    });
  });
});
