/** What of the usage an address may say. Pure, and loaded with the first page: small. */

import type { UsageBy } from "../services/usage";

export const USAGE_BY = [
  ...(["user", "group", "workspace", "project"] as const),
  ...(["pool", "agent", "type", "size", "label"] as const),
] satisfies UsageBy[];

export const PERIODS = ["day", "week", "month"] as const;
export type PeriodName = (typeof PERIODS)[number];

/** A day that there is, as `2026-11-21`. */
export function isDay(text: unknown): text is string {
  if (typeof text !== "string" || !/^(19[7-9]|[2-8]\d\d)\d-\d\d-\d\d$/.test(text)) return false;
  const time = Date.parse(text);
  return Number.isFinite(time) && new Date(time).toISOString().startsWith(text);
}
