import { describe, expect, it } from "vitest";
import {
  chartSearch,
  clusterSearch,
  compareSearch,
  createSearch,
  experimentSearch,
  id,
  listSearch,
  loginSearch,
  numbers,
  projectSearch,
  taskSearch,
  tasksSearch,
  trialSearch,
  usageSearch,
} from "./addresses";

/** Without what is left out. */
const said = (search: object) => JSON.parse(JSON.stringify(search));

describe("an address", () => {
  it("keeps what means something", () => {
    expect(said(listSearch({ q: "lr<1", state: "running", owner: "me", sort: "-id", rows: "trials" }))).toEqual({
      q: "lr<1",
      state: "running",
      owner: "me",
      sort: "-id",
      rows: "trials",
    });
    expect(said(chartSearch({ from: 3, to: 9, smooth: 0.5, x: "epoch", log: false, pattern: true }))).toEqual({
      from: 3,
      to: 9,
      smooth: 0.5,
      x: "epoch",
      log: false,
      pattern: true,
    });
    expect(said(trialSearch({ tab: "logs", q: "step", line: 7, level: "ERROR" }))).toMatchObject({
      tab: "logs",
      line: 7,
    });
    expect(said(usageSearch({ by: "agent", from: "2026-01-31", per: "week" }))).toEqual({
      by: "agent",
      from: "2026-01-31",
      per: "week",
    });
    expect(said(createSearch({ fork: 7, project: "3" }))).toEqual({ fork: 7, project: 3 });
  });
  it("leaves out what means nothing", () => {
    const odd = {
      q: ["a"],
      state: "nowhere",
      owner: "you",
      archived: "yes",
      cols: "id",
      rows: 3,
      tab: "none",
      note: 1.5,
    };
    expect(said(listSearch(odd))).toEqual({});
    expect(said(projectSearch(odd))).toEqual({});
    expect(said(taskSearch({ tab: "none", line: -1, level: "LOUD" }))).toEqual({});
    expect(said(tasksSearch({ type: "x y", workspace: "1", old: 1 }))).toEqual({});
    expect(said(chartSearch({ from: "3", to: 2 ** 60, smooth: 1, x: "yes", view: "none" }))).toEqual({});
    expect(said(usageSearch({ by: "weather", from: "31.1.2026", per: "hour" }))).toEqual({});
    expect(said(experimentSearch({ brush: "a", best: 3, axes: [1, "lr"] }))).toEqual({ axes: ["lr"] });
    expect(said(loginSearch({ next: "" }))).toEqual({});
    expect(said(listSearch({ state: "constructor" }))).toEqual({});
    expect(said(createSearch({ fork: "x", project: -3 }))).toEqual({});
  });
  it("takes a text that looks like a number for what it was", () => {
    expect(numbers("1,2")).toBe("1,2");
    expect(numbers("12")).toBe(12);
    expect(numbers("")).toBeUndefined();
    expect(clusterSearch({ q: 7 }).q).toBe("7");
    expect([id("7"), id("7x"), id("")]).toEqual([7, 0, 0]);
  });
  it("reads those of before: attempts stand among the events, and steps were called batches", () => {
    expect(trialSearch({ tab: "attempts" }).tab).toBe("events");
    expect(compareSearch({ x: "batches" }).x).toBe("steps");
    expect(compareSearch({ x: "time" }).x).toBe("time");
  });
});
