/** Experiments: searched in windows, shown. */

import { answered, api } from "./client";
import { query } from "./live";
import type { components } from "./schema";
import { sortText } from "./sorts";
import { newsOfExperiment, newsOfExperiments, newsOfTrials, waitingPools } from "./stream/news";

/** `asOf`: when the times that run on were true, on this machine's clock. */
export type Experiment = components["schemas"]["Experiment"] & {
  asOf?: number;
  /** The trial whose metrics stand for it, in lists. */
  best?: components["schemas"]["Trial"];
};
export type State = components["schemas"]["State"];
export type Trial = components["schemas"]["Trial"] & { asOf?: number };

/** The command that makes the first experiment, at this cluster. */
export function submitCommand(): string {
  return `tenax -m ${window.location.origin} experiment create config.yaml .`;
}

/** Rows that are asked for at once. */
export const WINDOW = 50;

/** What a list is about; each part of it stands in the address. */
export interface ExperimentSearch {
  projectId?: number;
  /** Part of the name. */
  name?: string;
  /** A filter as people type it. */
  query?: string;
  /** Beside those of that name, the one of this number. */
  orId?: number;
  /** Only those of a greater, or of a smaller number. */
  after?: number;
  before?: number;
  states?: State[];
  userId?: number;
  archived?: boolean;
  /** `column` or `-column`, of the master's columns; several with commas. */
  sort: string;
  /** Columns of metrics that are shown: rows come with these alone. */
  metrics?: string[];
}

export interface Found {
  rows: Experiment[];
  total: number;
}

interface Condition {
  kind: "field";
  columnName: string;
  location: string;
  operator: string;
  type: string;
  value: string | number;
}

function field(columnName: string, operator: string, type: string, value: string | number): Condition {
  return { kind: "field", columnName, location: "LOCATION_TYPE_EXPERIMENT", operator, type, value };
}

/** The filter as the master reads it. */
export function filterText(search: ExperimentSearch): string {
  const children: object[] = [];
  const named = search.name ? [field("name", "contains", "COLUMN_TYPE_TEXT", search.name)] : [];
  if (search.orId === undefined) children.push(...named);
  else {
    const numbered = field("id", "=", "COLUMN_TYPE_NUMBER", search.orId);
    children.push({ kind: "group", conjunction: "or", children: [...named, numbered] });
  }
  if (search.after !== undefined) children.push(field("id", ">", "COLUMN_TYPE_NUMBER", search.after));
  if (search.before !== undefined) children.push(field("id", "<", "COLUMN_TYPE_NUMBER", search.before));
  if (search.userId !== undefined) children.push(field("user", "=", "COLUMN_TYPE_NUMBER", search.userId));
  if (search.states?.length) {
    const any = search.states.map((state) => field("state", "=", "COLUMN_TYPE_TEXT", state.replace("STATE_", "")));
    children.push({ kind: "group", conjunction: "or", children: any });
  }
  return JSON.stringify({
    filterGroup: { kind: "group", conjunction: "and", children },
    showArchived: search.archived ?? false,
  });
}

function topicOf({ projectId, userId }: ExperimentSearch): string {
  return projectId !== undefined ? `projects/${projectId}/experiments` : userId ? `users/${userId}` : "experiments";
}

export function experimentsQuery(search: ExperimentSearch, offset = 0, limit = WINDOW) {
  return query({
    queryKey: ["experiments", search, offset, limit],
    queryFn: async ({ signal }): Promise<Found> => {
      const body = {
        projectId: search.projectId ?? null,
        offset,
        limit,
        sort: sortText(search.sort),
        filter: filterText(search),
        query: search.query ?? null,
        omitConfig: true,
        metrics: search.metrics ?? [],
      };
      const reply = await answered(api.POST("/api/v1/experiments-search", { body, signal }));
      const asOf = Date.now();
      const rows = reply.experiments.map(
        ({ experiment, bestTrial }): Experiment => ({ ...experiment, asOf, best: bestTrial ?? undefined }),
      );
      return { rows, total: reply.pagination.total ?? 0 };
    },
    // Why something waits changes with its queue alone.
    topics: (found) => [
      topicOf(search),
      ...(search.states?.includes("STATE_QUEUED") ? waitingPools(found?.rows ?? []) : []),
    ],
    news: (change, found) => newsOfExperiments(search, offset, change, found),
  });
}

export function experimentQuery(id: number) {
  return query({
    queryKey: ["experiment", id],
    queryFn: async ({ signal }) => {
      const params = { path: { experimentId: id } };
      const shown = await answered(api.GET("/api/v1/experiments/{experimentId}", { params, signal }));
      return { ...shown, experiment: { ...shown.experiment, asOf: Date.now() } as Experiment };
    },
    topics: (shown) => [`experiments/${id}`, ...(shown ? waitingPools([shown.experiment]) : [])],
    news: newsOfExperiment,
  });
}

export interface TrialsFound {
  rows: Trial[];
  total: number;
}

export type TrialSort = NonNullable<components["schemas"]["TrialSortBy"]>;

export function trialsQuery(id: number, sort: TrialSort, descending: boolean, offset = 0, limit = WINDOW) {
  return query({
    queryKey: ["trials", id, sort, descending, offset, limit],
    queryFn: async ({ signal }): Promise<TrialsFound> => {
      const asked = {
        offset,
        limit,
        // None: a trial may have thousands.
        metrics: [""],
        sortBy: sort,
        orderBy: descending ? ("ORDER_BY_DESC" as const) : ("ORDER_BY_ASC" as const),
      };
      const path = { experimentId: id };
      const reply = await answered(
        api.GET("/api/v1/experiments/{experimentId}/trials", { params: { path, query: asked }, signal }),
      );
      const asOf = Date.now();
      return { rows: reply.trials.map((trial): Trial => ({ ...trial, asOf })), total: reply.pagination.total ?? 0 };
    },
    topics: [`experiments/${id}/trials`],
    news: (change, found) => newsOfTrials(sort, id, change, found),
  });
}
