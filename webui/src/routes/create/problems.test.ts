import { expect, test } from "vitest";
import { problemsOf } from "./problems";

test("each problem has its line", () => {
  const refusal =
    "The configuration has 2 problems:\n  searcher.metric (line 4): must be text\n  entrypoint: 'entrypoint' must be set";
  expect(problemsOf(refusal)).toEqual([
    { line: 4, message: "searcher.metric: must be text" },
    { message: "entrypoint: 'entrypoint' must be set" },
  ]);
});

test("a refusal of another kind is one problem", () => {
  expect(problemsOf("project 9 was not found")).toEqual([{ message: "project 9 was not found" }]);
});
