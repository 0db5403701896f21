/** Pools and machines. */

import { answered, api } from "./client";
import { query } from "./live";
import type { components } from "./schema";
import { newsOf, newsOfAgents } from "./stream/news";

export type Pool = components["schemas"]["ResourcePool"];
export type Agent = components["schemas"]["Agent"];
export type Slot = components["schemas"]["Slot"];

/** Pools whose queues are followed. */
const MAX_POOLS = 20;

export const poolsQuery = query({
  queryKey: ["pools"],
  queryFn: async ({ signal }): Promise<Pool[]> =>
    (await answered(api.GET("/api/v1/resource-pools", { signal }))).resourcePools,
  topics: (pools) => ["agents", ...(pools ?? []).slice(0, MAX_POOLS).map((pool) => `job-queues/${pool.name}`)],
  news: (change) => newsOf(["agent", "job_queue"], change),
});

export const agentsQuery = query({
  queryKey: ["agents"],
  queryFn: async ({ signal }): Promise<Agent[]> => {
    // Each slot has its container.
    const params = { query: { excludeContainers: true } };
    return (await answered(api.GET("/api/v1/agents", { params, signal }))).agents;
  },
  topics: ["agents"],
  news: newsOfAgents,
});
