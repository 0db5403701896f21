import { expect, test } from "vitest";
import { stateOf, taskAllows } from "./tasks";

const ACTIVE = "GENERIC_TASK_STATE_ACTIVE" as const;

test("while a task goes on its state is that of its attempt, then its own", () => {
  expect(stateOf({ taskState: ACTIVE, state: "STATE_PULLING" })).toBe("STATE_PULLING");
  expect(stateOf({ taskState: ACTIVE, state: "STATE_WAITING" })).toBe("STATE_STARTING");
  // Between two attempts it waits for slots again.
  expect(stateOf({ taskState: ACTIVE, state: "STATE_TERMINATED" })).toBe("STATE_QUEUED");
  expect(stateOf({ taskState: "GENERIC_TASK_STATE_ERROR", state: "STATE_TERMINATED" })).toBe("STATE_ERROR");
});

test("what has ended is not killed, and what cannot save is not paused", () => {
  const runs = { taskState: ACTIVE, state: "STATE_RUNNING" as const, noPause: false };
  expect(["kill", "pause", "unpause"].map((verb) => taskAllows(runs, verb as "kill"))).toEqual([true, true, false]);
  expect(taskAllows({ ...runs, noPause: true }, "pause")).toBe(false);
  const paused = { ...runs, taskState: "GENERIC_TASK_STATE_PAUSED" as const };
  expect(["kill", "pause", "unpause"].map((verb) => taskAllows(paused, verb as "kill"))).toEqual([true, false, true]);
  expect(taskAllows({ ...runs, taskState: "GENERIC_TASK_STATE_COMPLETED" }, "kill")).toBe(false);
});
