/** The message that administrators show to everyone. What is shown now comes with what is known of the master. */

import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "./client";
import type { components } from "./schema";

export type ClusterMessage = components["schemas"]["ClusterMessageView"];

/** The one that is shown, or will be; null: none. */
export const messageQuery = queryOptions({
  queryKey: ["cluster-message"],
  queryFn: async ({ signal }): Promise<ClusterMessage | null> =>
    (await answered(api.GET("/api/v1/master/cluster_message", { signal }))).clusterMessage ?? null,
});

/** From now on or a moment, until another one or until it is taken back. */
export async function setMessage(message: string, startTime?: string, endTime?: string): Promise<void> {
  await answered(api.PUT("/api/v1/master/cluster_message", { body: { message, startTime, endTime } }));
}

export async function clearMessage(): Promise<void> {
  await answered(api.DELETE("/api/v1/master/cluster_message"));
}
