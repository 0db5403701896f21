import { describe, expect, it } from "vitest";
import type { Job } from "../services/queue";
import { moveOf } from "./places";

function queue(...priorities: number[]): Job[] {
  return priorities.map((priority, place) => ({ jobId: `j${place}`, priority })) as Job[];
}

describe("a move to the next place", () => {
  it("is beside the neighbour on that side, and back beside one of its own priority", () => {
    const jobs = queue(1, 42, 42);
    expect(moveOf(jobs, "j1", "sooner")).toMatchObject({
      change: { jobId: "j1", aheadOf: "j0" },
      back: { jobId: "j1", aheadOf: "j2" },
    });
    expect(moveOf(jobs, "j1", "later")).toMatchObject({ change: { jobId: "j1", behindOf: "j2" } });
    expect(moveOf(jobs, "j0", "later")?.back).toEqual({ jobId: "j0", priority: 1 });
    expect(moveOf(jobs, "j2", "sooner")?.back).toEqual({ jobId: "j2", behindOf: "j1" });
  });

  it("is none beyond the ends, or of a job that is not there", () => {
    const jobs = queue(42, 42);
    expect(moveOf(jobs, "j0", "sooner")).toBeUndefined();
    expect(moveOf(jobs, "j1", "later")).toBeUndefined();
    expect(moveOf(jobs, "gone", "later")).toBeUndefined();
  });
});
