/** Trials: one of them, what it has reported, and what it has written. */

import { answered, api, MASTER, request } from "./client";
import type { Trial } from "./experiments";
import { query } from "./live";
import { newsOf, newsOfSeries, newsOfTrial } from "./stream/news";

/** Points of a chart: more than that no screen shows. */
const POINTS = 1200;
/** Lines of a tail. */
export const TAIL = 400;
/** Curves of one trial are a dozen requests. */
const METRICS_MS = 2000;

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
  values: (number | null)[];
}

interface SentSeries {
  total: number;
  steps: number[];
  values: (number | string | null)[];
}

export function seriesQuery(id: number, group: string, metric: string) {
  return query({
    queryKey: ["series", id, group, metric],
    queryFn: async ({ signal }): Promise<Series> => {
      const params = { path: { trialId: id }, query: { metric, group, maxPoints: POINTS } };
      const sent = (await answered(
        api.GET("/api/v1/trials/{trialId}/series", { params, signal }),
      )) as unknown as SentSeries;
      return {
        total: sent.total,
        steps: sent.steps,
        values: sent.values.map((value) => (typeof value === "number" ? value : null)),
      };
    },
    topics: [`trials/${id}`],
    news: (change, series) => newsOfSeries([id], group, series.steps.at(-1) ?? -1, change),
    everyMs: METRICS_MS,
  });
}

/** One line of output. */
export interface LogLine {
  id: string;
  timestamp: string;
  text: string;
  level: string;
  rank: number | null;
}

interface SentLine {
  id: string;
  timestamp: string;
  log: string;
  level: string;
  rankId?: number;
}

/** The newest lines, oldest first. */
export function logTailQuery(id: number, limit = TAIL) {
  return query({
    queryKey: ["log", id, limit],
    queryFn: async ({ signal }): Promise<LogLine[]> => {
      // A stream of lines, one JSON each: outside of what OpenAPI describes.
      const url = new URL(`api/v1/trials/${id}/logs`, MASTER);
      url.search = new URLSearchParams({ limit: String(limit), orderBy: "ORDER_BY_DESC" }).toString();
      const text = await (await request(url, { signal })).text();
      return linesOf(text).reverse();
    },
    topics: [`trials/${id}`],
    news: (change) => (change.kind === "output" && change.trialId === id ? { refetch: true } : undefined),
  });
}

/** The lines of an answer. Raises an error for one that broke off. */
export function linesOf(text: string): LogLine[] {
  return text
    .split("\n")
    .filter((part) => part !== "")
    .map((part) => {
      const { result: sent, error } = JSON.parse(part) as { result: SentLine; error?: { message: string } };
      if (error) throw new Error(error.message);
      return {
        id: sent.id,
        timestamp: sent.timestamp,
        text: sent.log,
        level: sent.level.replace("LOG_LEVEL_", "").toLowerCase(),
        rank: sent.rankId ?? null,
      };
    });
}

/** A metric of several trials, for one chart. */
export function compareQuery(ids: number[], group: string, metric: string) {
  return query({
    queryKey: ["compare", ids, group, metric],
    queryFn: async ({ signal }) => {
      const asked = { trialIds: ids, metricNames: [metric], group, maxDatapoints: POINTS };
      const reply = await answered(api.GET("/api/v1/trials/time-series", { params: { query: asked }, signal }));
      return reply.trials.map(({ trial, metrics }) => {
        const points = metrics[0]?.data ?? [];
        return {
          trial: trial.id,
          steps: points.map((point) => point.batches),
          values: points.map((point) => {
            const value = point.values?.[metric];
            return typeof value === "number" ? value : null;
          }),
        };
      });
    },
    enabled: ids.length > 0,
    topics: ids.map((id) => `trials/${id}`),
    news: (change) => newsOfSeries(ids, group, -1, change),
    everyMs: METRICS_MS,
  });
}
