/** Trials of all experiments of a project, or of all projects, in windows: lists of runs, as the API calls them. */

import { answered, api } from "./client";
import { type ExperimentSearch, filterText, WINDOW } from "./experiments";
import { query } from "./live";
import type { components } from "./schema";
import { sortText } from "./sorts";
import { hasEnded } from "./states";
import type { Change } from "./stream/messages";
import { differing, type News } from "./stream/subject";

/** `asOf`: when the times that run on were true, on this machine's clock. */
export type ListedTrial = components["schemas"]["FlatRun"] & { asOf?: number };

export interface TrialsListed {
  rows: ListedTrial[];
  total: number;
}

/** Experiments whose trials are followed; of a longer window those whose row changes are asked for again. */
const MAX_FOLLOWED = 20;
/** Asked for again at most so often. */
const EVERY_MS = 3000;

export function listedTrialsQuery(search: ExperimentSearch, offset = 0, limit = WINDOW) {
  return query({
    queryKey: ["listed-trials", search, offset, limit],
    queryFn: async ({ signal }): Promise<TrialsListed> => {
      const body = {
        projectId: search.projectId ?? null,
        offset,
        limit,
        sort: sortText(search.sort),
        filter: filterText(search),
        query: search.query ?? null,
        metrics: search.metrics ?? [],
      };
      const reply = await answered(api.POST("/api/v1/runs", { body, signal }));
      const asOf = Date.now();
      return { rows: reply.runs.map((run): ListedTrial => ({ ...run, asOf })), total: reply.pagination.total ?? 0 };
    },
    topics: (found) => [
      search.projectId !== undefined ? `projects/${search.projectId}/experiments` : "experiments",
      ...live(found?.rows ?? []).map((id) => `experiments/${id}/trials`),
    ],
    news: (change, found) => newsOfListed(change, found),
    everyMs: EVERY_MS,
  });
}

/** Experiments of those rows that may change. */
function live(rows: readonly ListedTrial[]): number[] {
  const ids = rows.filter((row) => !hasEnded(row.state)).map((row) => row.experiment.id);
  return [...new Set(ids)].slice(0, MAX_FOLLOWED);
}

/** What a trial is now stands in its row at once; where it stands in the list, and what its experiment says, is asked for. */
export function newsOfListed(change: Change, found: TrialsListed): News<TrialsListed> {
  if (change.kind === "experiment") return { refetch: true };
  if (change.kind !== "trial") return undefined;
  const at = found.rows.findIndex((row) => row.id === change.id);
  const row = found.rows[at];
  if (row === undefined || change.deleted) return { refetch: true };
  const differ = differing<ListedTrial>(row, change, ["state", "searcherMetricValue", "endTime"]);
  return { data: differ && { ...found, rows: found.rows.with(at, { ...row, ...differ }) }, refetch: true };
}
