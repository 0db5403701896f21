import { expect, test } from "vitest";
import { numberedIn } from "./scales";
import { inUnit, shareBetween, unitOf } from "./units";

test("what is too large or too small to be subtracted is drawn in a unit, and the rest as it is", () => {
  expect(unitOf([[1, null, -2e6], [0]])).toBe(1);
  expect(unitOf([[null], [0]])).toBe(1);
  const plain = [1, null, 2];
  expect(inUnit(plain, 1)).toBe(plain);
  for (const greatest of [1e308, Number.MAX_VALUE, 3e40, 5e-30, 1e-320, Number.MIN_VALUE]) {
    const unit = unitOf([[null, -greatest, greatest]]);
    const [low, gap, high] = inUnit([-greatest, null, greatest], unit);
    expect(gap).toBeNull();
    expect(high).toBe(-(low as number));
    expect(high).toBeGreaterThan(0.1);
    expect(high).toBeLessThanOrEqual(11);
  }
});

test("beside ordinary values nothing is so near to zero that its logarithm is lost", () => {
  expect(inUnit([1e-320, 1], 1)).toEqual([0, 1]);
});

test("an axis in a unit says values, and nothing where there is no such number", () => {
  const values = numberedIn(1e308) as (...given: unknown[]) => string[];
  expect(values(undefined, [-1, 0, 1, 2, null])).toEqual(["-1.000e+308", "0", "1.000e+308", "", ""]);
});

test("a share between two values whose distance is beyond all numbers", () => {
  expect(shareBetween(-1e308, 1e308, 0)).toBe(0.5);
  expect(shareBetween(0, 1e-320, 1e-320)).toBe(1);
  expect(shareBetween(2, 4, 3)).toBe(0.5);
});
