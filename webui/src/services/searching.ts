/** The search of an experiment: its rungs, what its trials tried, what of that decided, and how its best came about. */

import { answered, api } from "./client";
import type { Trial } from "./experiments";
import { query } from "./live";
import type { components } from "./schema";
import type { Change } from "./stream/messages";

export type Search = components["schemas"]["GetSearchResponse"];
export type Rung = components["schemas"]["Rung"];
export type SearchedTrial = components["schemas"]["SearchedTrial"];
export type SearchTrials = components["schemas"]["GetSearchTrialsResponse"];
export type Importance = components["schemas"]["GetImportanceResponse"];

/** Trials that are drawn at most. */
const DRAWN = 1000;
const SEARCH_MS = 4000;
const IMPORTANCE_MS = 20_000;

/** A trial of it came, went on, ended, or was validated. */
function newsOfSearch(id: number, change: Change) {
  const own = change.kind === "trial" && (change.experimentId === id || change.deleted);
  return own || (change.kind === "experiment" && change.id === id) ? { refetch: true } : undefined;
}

function about(id: number) {
  return {
    topics: [`experiments/${id}`, `experiments/${id}/trials`],
    news: (change: Change) => newsOfSearch(id, change),
    everyMs: SEARCH_MS,
  };
}

export function searchQuery(id: number) {
  return query({
    queryKey: ["search", id],
    queryFn: async ({ signal }): Promise<Search> => {
      // Of its journal nothing is shown.
      const params = { path: { experimentId: id }, query: { limit: 1 } };
      return answered(api.GET("/api/v1/experiments/{experimentId}/search", { params, signal }));
    },
    ...about(id),
  });
}

export function searchTrialsQuery(id: number) {
  return query({
    queryKey: ["search-trials", id],
    queryFn: async ({ signal }): Promise<SearchTrials> => {
      const params = { path: { experimentId: id }, query: { limit: DRAWN } };
      return answered(api.GET("/api/v1/experiments/{experimentId}/search/trials", { params, signal }));
    },
    ...about(id),
  });
}

export function importanceQuery(id: number) {
  return query({
    queryKey: ["importance", id],
    queryFn: async ({ signal }): Promise<Importance> => {
      const params = { path: { experimentId: id } };
      return answered(api.GET("/api/v1/experiments/{experimentId}/search/importance", { params, signal }));
    },
    ...about(id),
    everyMs: IMPORTANCE_MS,
  });
}

/** The validations that were the best so far when they came. */
export function historyQuery(id: number) {
  return query({
    queryKey: ["best-so-far", id],
    queryFn: async ({ signal }) => {
      const params = { path: { experimentId: id } };
      return (await answered(api.GET("/api/v1/experiments/{experimentId}/validation-history", { params, signal })))
        .validationHistory;
    },
    ...about(id),
  });
}

/** What is brushed of one axis: numbers between two, or some texts. */
export type Brush = { from: number; to: number } | { among: string[] };
/** Axis -> what is brushed of it; the axis of the metric is `METRIC`. */
export type Brushes = Record<string, Brush>;
/** No hyperparameter is called so. */
export const METRIC = "";

function condition(columnName: string, location: string, type: string, operator: string, value: unknown) {
  return { kind: "field", columnName, location, operator, type, value };
}

/** The filter of the trials that brushes leave, as the master reads it. */
export function brushedFilter(id: number, brushes: Brushes): string {
  const children: object[] = [condition("experimentId", "LOCATION_TYPE_RUN", "COLUMN_TYPE_NUMBER", "=", id)];
  for (const [name, brush] of Object.entries(brushes)) {
    const [column, location] =
      name === METRIC
        ? ["searcherMetricsVal", "LOCATION_TYPE_RUN"]
        : [`hp.${name}`, "LOCATION_TYPE_RUN_HYPERPARAMETERS"];
    if ("among" in brush) {
      const any = brush.among.map((text) => {
        const truth = text === "true" || text === "false";
        return condition(
          column,
          location,
          truth ? "COLUMN_TYPE_UNSPECIFIED" : "COLUMN_TYPE_TEXT",
          "=",
          truth ? text === "true" : text,
        );
      });
      children.push({ kind: "group", conjunction: "or", children: any });
    } else {
      children.push(condition(column, location, "COLUMN_TYPE_NUMBER", ">=", brush.from));
      children.push(condition(column, location, "COLUMN_TYPE_NUMBER", "<=", brush.to));
    }
  }
  return JSON.stringify({ filterGroup: { kind: "group", conjunction: "and", children }, showArchived: true });
}

/** The trials that brushes leave, in an order of lists of runs: `column` or `-column`. */
export function brushedQuery(id: number, brushes: Brushes, sort: string, offset: number, limit: number) {
  return query({
    queryKey: ["brushed", id, brushes, sort, offset, limit],
    queryFn: async ({ signal }): Promise<{ rows: Trial[]; total: number }> => {
      const column = sort.replace(/^-/, "");
      const order = `${column}=${sort.startsWith("-") ? "desc" : "asc"}`;
      const body = { projectId: null, offset, limit, sort: order, filter: brushedFilter(id, brushes), metrics: [] };
      const reply = await answered(api.POST("/api/v1/runs", { body, signal }));
      const asOf = Date.now();
      const rows = reply.runs.map(
        (run) =>
          ({
            id: run.id,
            experimentId: id,
            state: run.state,
            startTime: run.startTime,
            endTime: run.endTime,
            hparams: run.hyperparameters,
            searcherMetricValue: run.searcherMetricValue,
            runningSeconds: run.runningSeconds,
            asOf,
          }) as Trial,
      );
      return { rows, total: reply.pagination.total ?? 0 };
    },
    ...about(id),
  });
}
