import { expect, test } from "vitest";
import { leaves, settings } from "./differences";

test("settings by their paths", () => {
  const tree = { a: 1, b: { c: "x", d: { e: [1, 2] } }, f: {}, g: null };
  expect([...leaves(tree)]).toEqual([
    ["a", "1"],
    ["b.c", "x"],
    ["b.d.e", "[1,2]"],
    ["f", "{}"],
    ["g", "null"],
  ]);
});

test("what differs comes first, also what only some have", () => {
  const found = settings([leaves({ lr: 0.1, seed: 1, same: true }), leaves({ lr: 0.2, same: true })]);
  expect(found.map(({ name, differs }) => [name, differs])).toEqual([
    ["lr", true],
    ["seed", true],
    ["same", false],
  ]);
  expect(found[1]?.values).toEqual(["1", undefined]);
});
