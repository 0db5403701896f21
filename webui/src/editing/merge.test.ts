import { expect, test } from "vitest";
import { differing, expectedOf, merged } from "./merge";

const FORMER = { name: "a", notes: "n", labels: ["x"] };

test("what one has not touched is as the other left it", () => {
  const mine = { ...FORMER, name: "mine" };
  const theirs = { ...FORMER, notes: "theirs", labels: ["y"] };
  expect(merged(FORMER, mine, theirs)).toEqual({
    values: { name: "mine", notes: "theirs", labels: ["y"] },
    contested: [],
  });
});

test("what both have changed is contested, and stays as one has it", () => {
  const mine = { ...FORMER, name: "mine", labels: ["m"] };
  const theirs = { ...FORMER, name: "theirs", labels: ["m"] };
  expect(merged(FORMER, mine, theirs)).toEqual({ values: mine, contested: ["name"] });
});

test("what was put back by oneself is no change", () => {
  expect(differing(FORMER, { ...FORMER, labels: ["x"] })).toEqual([]);
});

test("what was absent is expected to be", () => {
  expect(expectedOf({ name: "a", notes: undefined as string | undefined }, ["name", "notes"])).toEqual({
    name: "a",
    notes: null,
  });
});
