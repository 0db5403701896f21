/** Trials side by side: what they are, what they tried, and one metric of all of them at a time. */

import { answered, api } from "./client";
import { query } from "./live";
import type { components } from "./schema";
import { newsOf, newsOfSeries } from "./stream/news";

/** Trials that are compared at most: more lines nobody tells apart. */
export const MAX_COMPARED = 50;
/** Points of all lines of a chart together, and of one line at most. */
const POINTS = 16_000;
const LINE_POINTS = 1200;
const RUNS_MS = 5000;
const SERIES_MS = 3000;

export type ComparedTrial = components["schemas"]["FlatRun"];

/** In the order of `ids`; trials that are gone are left out. */
export function comparedQuery(ids: readonly number[]) {
  return query({
    queryKey: ["compared", ids],
    queryFn: async ({ signal }): Promise<ComparedTrial[]> => {
      const children = ids.map((id) => ({
        kind: "field",
        columnName: "id",
        location: "LOCATION_TYPE_RUN",
        operator: "=",
        type: "COLUMN_TYPE_NUMBER",
        value: id,
      }));
      const filter = { filterGroup: { kind: "group", conjunction: "or", children }, showArchived: true };
      const body = { projectId: null, offset: 0, limit: ids.length, sort: "id=asc", filter: JSON.stringify(filter) };
      const { runs } = await answered(api.POST("/api/v1/runs", { body, signal }));
      const byId = new Map(runs.map((run) => [run.id, run]));
      return ids.flatMap((id) => byId.get(id) ?? []);
    },
    enabled: ids.length > 0,
    topics: ids.map((id) => `trials/${id}`),
    news: (change) => (ids.includes(Number(change.id)) ? newsOf(["trial", "metrics"], change) : undefined),
    everyMs: RUNS_MS,
  });
}

/** One metric of one trial. `times`: microseconds since 1970. */
export interface TrialSeries {
  trialId: number;
  total: number;
  steps: number[];
  times: number[];
  values: (number | null)[];
}

interface SentSeries {
  trialId: number;
  total: number;
  steps: number[];
  times: number[];
  values: (number | string | null)[];
}

/** A metric of several trials, for one chart; without those that have not reported it. */
export function manySeriesQuery(ids: readonly number[], group: string, metric: string, enabled = true) {
  return query({
    queryKey: ["many-series", ids, group, metric],
    queryFn: async ({ signal }): Promise<TrialSeries[]> => {
      const maxPoints = Math.min(LINE_POINTS, Math.ceil(POINTS / Math.max(1, ids.length)));
      const asked = { trialIds: [...ids], metric, group, maxPoints };
      const sent = (await answered(
        api.GET("/api/v1/trials/series", { params: { query: asked }, signal }),
      )) as unknown as { series: SentSeries[] };
      return sent.series.map((line) => ({
        ...line,
        values: line.values.map((value) => (typeof value === "number" ? value : null)),
      }));
    },
    enabled: enabled && ids.length > 0 && metric !== "",
    topics: ids.map((id) => `trials/${id}`),
    news: (change) => newsOfSeries(ids, group, -1, change),
    everyMs: SERIES_MS,
  });
}
