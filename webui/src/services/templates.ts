/** Templates: settings that several configurations share. */

import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "./client";
import type { components } from "./schema";

export type Template = components["schemas"]["Template"];

export const templatesQuery = queryOptions({
  queryKey: ["templates"],
  queryFn: async ({ signal }): Promise<Template[]> =>
    (await answered(api.GET("/api/v1/templates", { params: { query: { limit: 500 } }, signal }))).templates,
  staleTime: 30_000,
});
