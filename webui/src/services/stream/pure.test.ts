import { describe, expect, it } from "vitest";
import type { Experiment, ExperimentSearch, Found, Trial } from "../experiments";
import { pollIn, reconnectIn, refusedFor } from "./backoff";
import type { Change } from "./messages";
import { newsOfExperiment, newsOfExperiments, newsOfSeries, newsOfTrial, newsOfTrials, waitingPools } from "./news";
import { EventParser } from "./sse";
import { applied } from "./subject";

describe("EventParser", () => {
  it("puts events together from whatever parts they come in", () => {
    const text = 'id: e-1\nevent: change\ndata: {"a":1}\n\n:\n\nid: e-2\n\nretry: 1000\nevent: hello\ndata: {}\n\n';
    for (const size of [1, 7, 1000]) {
      const parser = new EventParser();
      const sent = [];
      for (let at = 0; at < text.length; at += size) sent.push(...parser.push(text.slice(at, at + size)));
      expect(sent).toEqual([
        { event: "change", data: '{"a":1}', id: "e-1" },
        { event: "", data: "", id: "e-2" },
        { event: "hello", data: "{}", id: undefined },
      ]);
    }
  });
});

describe("waiting", () => {
  it("doubles up to a bound, and is spread", () => {
    expect([1, 2, 3, 6, 100].map((failures) => reconnectIn(failures, 1))).toEqual([500, 1000, 2000, 3000, 15000]);
    expect(reconnectIn(3, 0)).toBe(1000);
    expect([0, 1, 2, 3, 50].map(pollIn)).toEqual([10_000, 20_000, 40_000, 60_000, 60_000]);
  });
  it("heeds the master, within reason", () => {
    expect(refusedFor("5", 0)).toBe(5000);
    expect(refusedFor("99999", 0)).toBe(300_000);
    for (const said of [null, "", "soon", "-1"]) expect(refusedFor(said, 0)).toBe(30_000);
  });
});

const row = (id: number, more: Partial<Experiment> = {}) =>
  ({
    id,
    name: `e ${id}`,
    state: "STATE_RUNNING",
    progress: 0.1,
    numTrials: 1,
    archived: false,
    projectId: 1,
    userId: 1,
    startTime: "2026-01-01T00:00:00Z",
    duration: 5,
    ...more,
  }) as Experiment;
const change = (id: number, more: Partial<Change> = {}): Change => ({
  kind: "experiment",
  projectId: 1,
  userId: 1,
  name: `e ${id}`,
  state: "STATE_RUNNING",
  progress: 0.1,
  numTrials: 1,
  archived: false,
  ...more,
  id,
});
const found: Found = { rows: [row(9), row(8), row(7)], total: 200 };
const newest: ExperimentSearch = { sort: "-id" };
const news = (search: ExperimentSearch, told: Change, offset = 0) => newsOfExperiments(search, offset, told, found);

describe("news of a list of experiments", () => {
  it("writes what a change says into the row, and asks for nothing", () => {
    const told = news(
      newest,
      change(8, { state: "STATE_COMPLETED", endTime: "2026-01-01T01:00:00.5Z", reason: "done" }),
    );
    expect(told?.refetch).toBe(false);
    expect(told?.data?.rows[1]).toMatchObject({ state: "STATE_COMPLETED", reason: "done", duration: 3600 });
    expect(told?.data?.rows[0]).toBe(found.rows[0]);
    expect(news(newest, change(8))).toBeUndefined();
    expect(news(newest, { kind: "agent", id: "a1" })).toBeUndefined();
  });
  it("fetches again where the order or who belongs to it has changed", () => {
    expect(news({ sort: "-progress" }, change(8, { progress: 0.5 }))?.refetch).toBe(true);
    expect(news({ sort: "-progress" }, change(8, { name: "other" }))?.refetch).toBe(false);
    expect(news({ sort: "-id", states: ["STATE_RUNNING"] }, change(8, { state: "STATE_PAUSED" }))?.refetch).toBe(true);
    expect(news({ sort: "-id", name: "E 8" }, change(8, { name: "other" }))?.refetch).toBe(true);
    expect(news(newest, change(8, { archived: true }))?.refetch).toBe(true);
    expect(news({ sort: "-id", archived: true }, change(8, { archived: true }))?.refetch).toBe(false);
    expect(news(newest, { kind: "experiment", id: 8, deleted: true })?.refetch).toBe(true);
    expect(news({ sort: "-id", projectId: 1 }, change(8, { projectId: 2 }))?.refetch).toBe(true);
  });
  it("lets be what happens elsewhere in a long list", () => {
    expect(news(newest, change(3, { progress: 0.7 }))?.refetch).toBe(false);
    expect(news(newest, change(10))?.refetch).toBe(true);
    expect(news(newest, change(500), 100)?.refetch).toBe(false);
    expect(news({ sort: "id" }, change(500))?.refetch).toBe(false);
    expect(news({ sort: "-progress" }, change(3))?.refetch).toBe(true);
    expect(news({ sort: "-id", states: ["STATE_RUNNING"] }, change(3, { state: "STATE_ERROR" }))?.refetch).toBe(true);
  });
  it("asks why something waits when its queue changes", () => {
    const waits = { rows: [row(1, { state: "STATE_QUEUED", resourcePool: "gpus" })], total: 1 };
    expect(newsOfExperiments(newest, 0, { kind: "job_queue", id: "gpus" }, waits)?.refetch).toBe(true);
    expect(newsOfExperiments(newest, 0, { kind: "job_queue", id: "cpus" }, waits)).toBeUndefined();
    expect(waitingPools([...waits.rows, ...found.rows])).toEqual(["job-queues/gpus"]);
  });
});

describe("news of one thing", () => {
  const trial = { id: 4, experimentId: 2, state: "STATE_RUNNING", runId: 1, totalBatchesProcessed: 10 } as Trial;
  const ofTrial = (more: Partial<Change>): Change => ({ kind: "trial", experimentId: 2, ...more, id: 4 });

  it("takes steps and states of a trial, and fetches the rest when it turns", () => {
    const metrics = (steps: object) => newsOfTrial({ kind: "metrics", id: 4, steps }, trial);
    expect(metrics({ training: 12, gpu: 99 })?.data?.totalBatchesProcessed).toBe(12);
    expect(metrics({ gpu: 99 })).toBeUndefined();
    expect(newsOfTrial(ofTrial({ progress: 0.5 }), trial)).toMatchObject({ data: { progress: 0.5 }, refetch: false });
    expect(newsOfTrial(ofTrial({ state: "STATE_ERROR" }), trial)?.refetch).toBe(true);
    expect(newsOfTrial({ ...ofTrial({ state: "STATE_ERROR" }), id: 5 }, trial)).toBeUndefined();
  });
  it("takes a trial of a list, and asks for a new one", () => {
    const list = { rows: [trial], total: 1 };
    const told = (said: Change) => newsOfTrials("SORT_BY_ID", 2, said, list);
    expect(told(ofTrial({ progress: 0.5 }))).toMatchObject({ refetch: false, data: { rows: [{ progress: 0.5 }] } });
    expect(told({ ...ofTrial({}), id: 5 })?.refetch).toBe(true);
    expect(told({ ...ofTrial({}), id: 3 })?.refetch).toBe(false);
    expect(told({ ...ofTrial({}), id: 5, experimentId: 3 })).toBeUndefined();
  });
  it("asks for a curve only where its own group has something else", () => {
    const steps = { training: 20, validation: 10 };
    const told = (group: string, at: number, id = 4) => newsOfSeries([4], group, at, { kind: "metrics", id, steps });
    expect(told("validation", 10)).toBeUndefined();
    expect(told("training", 10)?.refetch).toBe(true);
    expect(told("training", 10, 5)).toBeUndefined();
    expect(told("gpu", 10)).toBeUndefined();
  });
  it("keeps an experiment and where its job stands apart", () => {
    const shown = { experiment: row(7), jobSummary: { jobsAhead: 2 } };
    const told = newsOfExperiment(change(7, { progress: 0.4 }), shown);
    expect(told).toEqual({ data: { ...shown, experiment: { ...row(7), progress: 0.4 } }, refetch: false });
    expect(newsOfExperiment(change(7, { numTrials: 2 }), shown)?.refetch).toBe(true);
    expect(newsOfExperiment(change(8), shown)).toBeUndefined();
  });
  it("writes what people wrote of an experiment, and fetches its notes when they are others", () => {
    const written = { description: "why", labels: ["a", "b"], notesDigest: "d1" };
    const shown = { experiment: { ...row(7), ...written } };
    expect(newsOfExperiment(change(7, { ...written, labels: ["a", "b"] }), shown)).toBeUndefined();
    const told = newsOfExperiment(change(7, { ...written, labels: ["b"], description: "" }), shown);
    expect(told).toMatchObject({ data: { experiment: { labels: ["b"], description: "" } }, refetch: false });
    expect(newsOfExperiment(change(7, { ...written, notesDigest: "d2" }), shown)?.refetch).toBe(true);
    const list = { rows: [shown.experiment], total: 1 };
    expect(newsOfExperiments(newest, 0, change(7, { ...written, notesDigest: "d2" }), list)?.refetch).toBe(true);
  });
});

describe("applied", () => {
  it("folds changes in their order", () => {
    const subject = { topics: [], news: (said: Change, data: number[]) => ({ data: [...data, Number(said.id)] }) };
    const told = [1, 2].map((id) => ({ kind: "k", id }));
    expect(applied(subject, told, [0])).toEqual({ data: [0, 1, 2], refetch: false });
  });
});
