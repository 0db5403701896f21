/** The filter that people type: the master reads it, says what is wrong and what may stand where. */

import { answered, api } from "./client";
import type { components } from "./schema";

export type Completion = components["schemas"]["Completion"];

export interface Checked {
  /** What is wrong, and where, in the master's count of characters. */
  problem?: components["schemas"]["QueryProblem"];
  completions: Completion[];
}

/** `at`: a place in the master's count. */
export async function checkFilter(text: string, at: number, projectId?: number): Promise<Checked> {
  const query = { query: text, at, projectId: projectId ?? 0 };
  const reply = await answered(api.GET("/api/v1/experiments-search/query", { params: { query } }));
  return { problem: reply.problem ?? undefined, completions: reply.completions ?? [] };
}

/** The master counts characters, where a script counts halves of some. */
export function toPlace(text: string, index: number): number {
  return Array.from(text.slice(0, index)).length;
}

export function fromPlace(text: string, place: number): number {
  return Array.from(text).slice(0, place).join("").length;
}
