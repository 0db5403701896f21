/** Trials: one of them, and what it has reported. */

import { answered, api } from "./client";
import type { Trial } from "./experiments";
import { query } from "./live";
import type { components } from "./schema";
import { isOfMachines, newsOf, newsOfSeries, newsOfTrial } from "./stream/news";

/** Points of a chart: more than that no screen shows. */
const POINTS = 1200;
/** Curves of one trial are a dozen requests. */
const METRICS_MS = 2000;
/** A sentence that changes more often is not read; ages go on by themselves. */
const HEALTH_MS = 5000;
const STALLED_MS = 30_000;
const MACHINES_MS = 10_000;
const MACHINE_POINTS = 400;
const EVENTS = 500;

export function trialQuery(id: number) {
  return query({
    queryKey: ["trial", id],
    queryFn: async ({ signal }): Promise<Trial> => {
      const reply = await answered(api.GET("/api/v1/trials/{trialId}", { params: { path: { trialId: id } }, signal }));
      return { ...reply.trial, asOf: Date.now() };
    },
    topics: [`trials/${id}`],
    news: newsOfTrial,
  });
}

/** `asOf`: when its ages were true, on this machine's clock. */
export type Health = components["schemas"]["GetTrialHealthResponse"] & { asOf: number };
export type Finding = components["schemas"]["HealthFinding"];

/** Whether a trial is well, in a sentence, with what shows it. */
export function healthQuery(id: number) {
  return query({
    queryKey: ["health", id],
    queryFn: async ({ signal }): Promise<Health> => {
      const asked = { params: { path: { trialId: id } }, signal };
      return { ...(await answered(api.GET("/api/v1/trials/{trialId}/health", asked))), asOf: Date.now() };
    },
    topics: [`trials/${id}`],
    news: (change) =>
      newsOf(["trial", "metrics"], change, id) ??
      (change.kind === "output" && change.trialId === id ? { refetch: true } : undefined),
    everyMs: HEALTH_MS,
  });
}

/** Trials of a person that hang; `nextIn`: seconds until another one may. */
export function stalledQuery(userId: number) {
  return query({
    queryKey: ["stalled", userId],
    queryFn: ({ signal }) => answered(api.GET("/api/v1/trials/stalled", { params: { query: { userId } }, signal })),
    topics: [`users/${userId}`],
    news: (change) => newsOf(["experiment"], change),
    everyMs: STALLED_MS,
  });
}

/** What happened to a trial, the newest first. */
export function eventsQuery(id: number) {
  return query({
    queryKey: ["trial-events", id],
    queryFn: async ({ signal }) => {
      const params = { path: { trialId: id }, query: { limit: EVENTS } };
      return (await answered(api.GET("/api/v1/trials/{trialId}/events", { params, signal }))).events;
    },
    topics: [`trials/${id}`],
    news: (change) => newsOf(["trial", "metrics"], change, id),
    everyMs: HEALTH_MS,
  });
}

/** A metric of a machine, or of one of its devices. */
export interface MachineSeries {
  name: string;
  agentId: string;
  device: string;
  /** Microseconds since 1970. */
  times: number[];
  values: (number | string | null)[];
}

/** All that the profiler measured. */
export function machineQuery(id: number) {
  return query({
    queryKey: ["machines", id],
    queryFn: async ({ signal }) => {
      const params = { path: { trialId: id }, query: { maxPoints: MACHINE_POINTS } };
      const sent = await answered(api.GET("/api/v1/trials/{trialId}/profiler/series", { params, signal }));
      return (sent as unknown as { series: MachineSeries[] }).series;
    },
    topics: [`trials/${id}`],
    news: (change) => (isOfMachines(change, id) ? { refetch: true } : undefined),
    everyMs: MACHINES_MS,
  });
}

/** What a metric comes to; numbers alone have more than a type and a last value. */
export interface Summary {
  type: string;
  last: unknown;
  count?: number;
  min?: number | string;
  max?: number | string;
  mean?: number | string;
}

/** Group of reports -> metric -> what it comes to. */
export type Summaries = Record<string, Record<string, Summary>>;

export function summariesQuery(id: number) {
  return query({
    queryKey: ["summaries", id],
    queryFn: async ({ signal }) =>
      (await answered(
        api.GET("/api/v1/trials/{trialId}/metric-summaries", { params: { path: { trialId: id } }, signal }),
      )) as unknown as Summaries,
    topics: [`trials/${id}`],
    news: (change) => newsOf(["metrics"], change, id),
    everyMs: METRICS_MS,
  });
}

/** One line of a chart; values that are no numbers are null, and leave a gap. */
export interface Series {
  total: number;
  steps: number[];
  /** Microseconds since 1970. */
  times: number[];
  values: (number | null)[];
}

interface SentSeries {
  total: number;
  steps: number[];
  times: number[];
  values: (number | string | null)[];
}

/** Steps, both inside; undefined: no limit. */
export interface Steps {
  from?: number;
  to?: number;
}

export function seriesQuery(id: number, group: string, metric: string, { from, to }: Steps = {}) {
  return query({
    queryKey: ["series", id, group, metric, from, to],
    queryFn: async ({ signal }): Promise<Series> => {
      const params = {
        path: { trialId: id },
        query: { metric, group, maxPoints: POINTS, fromStep: from, toStep: to },
      };
      const sent = (await answered(
        api.GET("/api/v1/trials/{trialId}/series", { params, signal }),
      )) as unknown as SentSeries;
      return {
        total: sent.total,
        steps: sent.steps,
        times: sent.times,
        values: sent.values.map((value) => (typeof value === "number" ? value : null)),
      };
    },
    topics: [`trials/${id}`],
    news: (change, series) => newsOfSeries([id], group, series.steps.at(-1) ?? -1, change, to),
    everyMs: METRICS_MS,
  });
}
