/** What slots were used for: slot seconds of each day or month, by one thing, and what was waited for them. */

import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "./client";
import type { components } from "./schema";

type Entry = components["schemas"]["AggregatedEntry"];
export type UsageBy = Exclude<components["schemas"]["UsageBy"], "experiment">;

/** Where the sums of each stand. */
const FIELDS = {
  user: "byUsername",
  group: "byGroup",
  workspace: "byWorkspace",
  project: "byProject",
  pool: "byResourcePool",
  agent: "byAgent",
  type: "byType",
  size: "bySize",
  label: "byExperimentLabel",
} as const satisfies Record<UsageBy, keyof Entry>;

/** Slot seconds of one day or month. */
export interface Share {
  /** `2026-11-21`, `2026-11`. */
  begins: string;
  total: number;
  waitedTotal: number;
  used: Record<string, number>;
  waited: Record<string, number>;
}

/** It grows with every second, and nobody is told: it is summed again when it is opened. */
export function usageQuery(by: UsageBy, from: string, to: string, monthly: boolean) {
  return queryOptions({
    queryKey: ["usage", by, from, to, monthly],
    queryFn: async ({ signal }): Promise<Share[]> => {
      const period = `RESOURCE_ALLOCATION_AGGREGATION_PERIOD_${monthly ? "MONTHLY" : "DAILY"}` as const;
      const query = { startDate: from, endDate: to, period, by };
      const reply = await answered(api.GET("/api/v1/resources/allocation/aggregated", { params: { query }, signal }));
      return reply.resourceEntries.map((entry) => ({
        begins: entry.periodStart,
        total: entry.seconds,
        waitedTotal: entry.waitedSeconds ?? 0,
        used: entry[FIELDS[by]] ?? {},
        waited: entry.waited ?? {},
      }));
    },
    staleTime: 60_000,
  });
}
