/** What a table shows, all of its rows, as a file of comma-separated values: full numbers, times as the master says them. */

import type { QueryClient } from "@tanstack/react-query";
import { textOf } from "../../services/columns";
import type { ExperimentSearch } from "../../services/experiments";
import { contentOf, titleOf } from "./columns";
import type { Kind } from "./kind";

/** Rows that are asked for at once. */
const ROWS = 500;

/** One cell. Text that a spreadsheet would run as a formula is kept from it by an apostrophe. */
export function cell(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "number") return String(value);
  const text = textOf(value);
  const harmless = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

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

/** Hands a text to the browser as a file. */
export function save(text: string, name: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
