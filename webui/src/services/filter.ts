/** The filter that people type: the master reads it, says what is wrong and what may stand where. */

import { answered, api } from "./client";
import type { Detail } from "./columns";
import type { components } from "./schema";

export type Completion = components["schemas"]["Completion"];

export interface Checked {
  /** What is wrong, and where, in the master's count of characters. */
  problem?: components["schemas"]["QueryProblem"];
  completions: Completion[];
  /** As the master read it. */
  tree?: unknown;
}

/** What a filter is about. */
export interface FilterOf {
  projectId?: number;
  detail: Detail;
}

/** `at`: a place in the master's count. */
export async function checkFilter(text: string, at: number | undefined, of: FilterOf): Promise<Checked> {
  const tableType = of.detail === "trials" ? ("TABLE_TYPE_RUN" as const) : ("TABLE_TYPE_EXPERIMENT" as const);
  const query = { query: text, at, projectId: of.projectId ?? 0, tableType };
  const reply = await answered(api.GET("/api/v1/experiments-search/query", { params: { query } }));
  return { problem: reply.problem ?? undefined, completions: reply.completions ?? [], tree: reply.tree };
}

const WORDS = /^[\p{L}\p{N}][\p{L}\p{N}_-]*(?: [\p{L}\p{N}][\p{L}\p{N}_-]*){0,9}$/u;

/** Nothing but a few words to be looked for in names: the master reads that without asking what is wrong with it. */
export function isWords(text: string): boolean {
  return text.length <= 200 && WORDS.test(text) && !/\b(?:AND|OR|NOT)\b/.test(text);
}

/** The master counts characters, where a script counts halves of some. */
export function toPlace(text: string, index: number): number {
  return Array.from(text.slice(0, index)).length;
}

export function fromPlace(text: string, place: number): number {
  return Array.from(text).slice(0, place).join("").length;
}
