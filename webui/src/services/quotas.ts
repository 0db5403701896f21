/** Quotas: what everybody may have, has used, and whose turn it is. */

import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "./client";
import type { components } from "./schema";

export type Quotas = components["schemas"]["GetQuotasResponse"];
export type QuotaLine = components["schemas"]["QuotaLine"];

/** Use grows with every second, and nobody is told: it is asked for when the page is opened. */
export const quotasQuery = queryOptions({
  queryKey: ["quotas"],
  queryFn: ({ signal }): Promise<Quotas> => answered(api.GET("/api/v1/quotas", { signal })),
});
