/** What a table shows, all of its rows, as a file of comma-separated values: full numbers, times as the master says them. */

import type { QueryClient } from "@tanstack/react-query";
import { cell } from "../../csv";
import type { ExperimentSearch } from "../../services/experiments";
import { contentOf, titleOf } from "./columns";
import type { Kind } from "./kind";

/** Rows that are asked for at once. */
const ROWS = 500;

/** All rows of a search, window by window: what changes meanwhile may stand twice, or not at all. Raises Refused. */
export async function csvOf<R extends { id: number }>(
  client: QueryClient,
  kind: Kind<R>,
  search: ExperimentSearch,
  ids: string[],
): Promise<string> {
  const lines = [ids.map((id) => cell(titleOf(kind, id))).join(",")];
  for (let offset = 0, total = 1; offset < total; ) {
    const asked = { ...kind.query(search, offset, ROWS), staleTime: 0, gcTime: 0 };
    const window = await client.fetchQuery(asked);
    if (window.rows.length === 0) break;
    for (const row of window.rows) lines.push(ids.map((id) => cell(contentOf(kind, row, id))).join(","));
    offset += window.rows.length;
    total = window.total;
  }
  return `${lines.join("\r\n")}\r\n`;
}
