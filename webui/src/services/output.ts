/** Output of trials and other tasks by the numbers of its lines: parts of it, which lines match, how much there is over time. */

import { queryOptions } from "@tanstack/react-query";
import { answered, api, MASTER, request } from "./client";
import { query } from "./live";
import type { components } from "./schema";

type Entry = components["schemas"]["OutputEntry"];
export type Histogram = components["schemas"]["LogHistogramResponse"];

/** Whose output it is: a trial's by its number, that of another task by its id. */
export type Writer = number | string;

/** Lines that are asked for at once. */
export const WINDOW = 200;
const LAST_LINE_MS = 1000;

/** One line. Numbers are the master's, from 0; people see them from 1. */
export interface OutputLine {
  number: number;
  timestamp: string;
  text: string;
  leftOut: number;
  level: string;
  rank: number | null;
  source: string;
}

export interface Part {
  lines: OutputLine[];
  total: number;
  /** What was begun of lines whose end has not come, as it is now. */
  unfinished: OutputLine[];
}

/** What lines are narrowed to, or looked for. */
export interface LineFilter {
  levels?: string[];
  ranks?: number[];
  sources?: string[];
  text?: string;
  regex?: boolean;
  errors?: boolean;
}

function lineOf(entry: Entry): OutputLine {
  return {
    number: entry.number,
    timestamp: entry.timestamp,
    text: entry.text,
    leftOut: entry.leftOut ?? 0,
    level: levelOf(entry.level),
    rank: entry.rankId ?? null,
    source: entry.source,
  };
}

/** As people read it. */
export function levelOf(level: string): string {
  return level.replace("LOG_LEVEL_", "").toLowerCase();
}

interface Place {
  offset?: number;
  numbers?: number[];
}

export async function part(of: Writer, place: Place, limit = WINDOW, signal?: AbortSignal): Promise<Part> {
  const query = { ...place, limit };
  const sent = await answered(
    typeof of === "number"
      ? api.GET("/api/v1/trials/{trialId}/logs/lines", { params: { path: { trialId: of }, query }, signal })
      : api.GET("/api/v1/tasks/{taskId}/logs/lines", { params: { path: { taskId: of }, query }, signal }),
  );
  return { lines: sent.lines.map(lineOf), total: sent.total, unfinished: (sent.unfinished ?? []).map(lineOf) };
}

/** The newest lines, and how many there are. */
export function tailQuery(of: Writer) {
  return query({
    queryKey: ["log", of, "tail"],
    queryFn: ({ signal }): Promise<Part> => part(of, {}, WINDOW, signal),
    topics: [typeof of === "number" ? `trials/${of}` : `tasks/${of}`],
    news: ({ kind, id, trialId }) =>
      kind === "output" && (typeof of === "number" ? trialId : id) === of ? { refetch: true } : undefined,
  });
}

/** The newest line; null: there is none. */
export function lastLineQuery(id: number) {
  return query({
    queryKey: ["log", id, "last"],
    queryFn: async ({ signal }): Promise<OutputLine | null> => {
      const { lines, unfinished } = await part(id, {}, 1, signal);
      return unfinished.at(-1) ?? lines.at(-1) ?? null;
    },
    topics: [`trials/${id}`],
    news: (change) => (change.kind === "output" && change.trialId === id ? { refetch: true } : undefined),
    everyMs: LAST_LINE_MS,
  });
}

export interface Hits {
  first: number[];
  last: number[];
  next: number;
  total: number;
}

export async function hits(
  of: Writer,
  filter: LineFilter,
  offset: number,
  limit: number,
  signal?: AbortSignal,
): Promise<Hits> {
  const asked = {
    offset,
    limit,
    levels: filter.levels,
    rankIds: filter.ranks,
    sources: filter.sources,
    searchText: filter.text,
    enableRegex: filter.text ? filter.regex : undefined,
    errors: filter.errors,
  };
  return answered(
    typeof of === "number"
      ? api.GET("/api/v1/trials/{trialId}/logs/hits", { params: { path: { trialId: of }, query: asked }, signal })
      : api.GET("/api/v1/tasks/{taskId}/logs/hits", { params: { path: { taskId: of }, query: asked }, signal }),
  );
}

/** The first line from `offset` on that tells of an error; undefined: there is none. */
export async function nextError(of: Writer, filter: LineFilter, offset: number): Promise<number | undefined> {
  for (let from = offset; ; ) {
    const looked = await hits(of, { ...filter, text: undefined, errors: true }, from, 1);
    if (looked.first[0] !== undefined) return looked.first[0];
    if (looked.next >= looked.total || looked.next <= from) return undefined;
    from = looked.next;
  }
}

/** Counted again when the output has grown by a good part; `lines`: how many there are. */
export function histogramQuery(of: Writer, lines: number) {
  const step = Math.max(100, 10 ** Math.floor(Math.log10(Math.max(1, lines))) / 10);
  const key = ["log", of, "histogram", Math.ceil(lines / step)];
  return queryOptions({
    queryKey: key,
    queryFn: ({ signal }): Promise<Histogram> =>
      answered(
        typeof of === "number"
          ? api.GET("/api/v1/trials/{trialId}/logs/histogram", { params: { path: { trialId: of } }, signal })
          : api.GET("/api/v1/tasks/{taskId}/logs/histogram", { params: { path: { taskId: of } }, signal }),
      ),
    enabled: lines > 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** What lines can be narrowed by. */
export interface Fields {
  ranks: number[];
  sources: string[];
}

export function fieldsQuery(of: Writer) {
  return queryOptions({
    queryKey: ["log", of, "fields"],
    queryFn: async ({ signal }): Promise<Fields> => {
      const url = new URL(`api/v1/${typeof of === "number" ? "trials" : "tasks"}/${of}/logs/fields`, MASTER);
      const { result } = JSON.parse(await (await request(url, { signal })).text());
      return { ranks: result.rankIds, sources: result.sources };
    },
    staleTime: 30_000,
  });
}
