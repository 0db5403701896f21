/** Rented machines: what they cost, divided among what ran on them, and what may be spent on them this month. */

import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "./client";
import type { components } from "./schema";

export type MachineCosts = components["schemas"]["GetMachineCostResponse"];
export type MachineCost = components["schemas"]["MachineCostView"];
export type MachineBudget = components["schemas"]["MachineBudgetView"];
type CostBy = components["schemas"]["CostBy"];

/** By what costs can be divided, among what the usage is summed by. */
export const COST_BY = ["user", "workspace", "project", "pool"] as const satisfies CostBy[];

/** Of whole days, in UTC. It grows with every second: it is asked for when the page is opened. */
export function costsQuery(by: (typeof COST_BY)[number], from: string, to: string) {
  return queryOptions({
    queryKey: ["machine costs", by, from, to],
    queryFn: ({ signal }): Promise<MachineCosts> => {
      const query = { by, since: from, until: to };
      return answered(api.GET("/api/v1/machines/cost", { params: { query }, signal }));
    },
    staleTime: 60_000,
  });
}

/** Those of all pools that rent machines, each once; without a pool: of all of them together. */
export const budgetsQuery = queryOptions({
  queryKey: ["machine budgets"],
  queryFn: async ({ signal }): Promise<MachineBudget[]> => {
    const { plans } = await answered(api.GET("/api/v1/machines/plan", { signal }));
    const budgets = plans.flatMap((plan) => plan.budgets ?? []);
    return [...new Map(budgets.map((budget) => [budget.resourcePool, budget])).values()];
  },
  staleTime: 60_000,
});
