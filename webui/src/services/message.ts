/** The message that administrators show to everyone: what is shown now, for all, and what is set, for them. */

import { answered, api } from "./client";
import { query } from "./live";
import type { components } from "./schema";

export type ClusterMessage = components["schemas"]["ClusterMessageView"];

/** What is shown to everyone now, and when the next one begins. */
export const shownMessageQuery = query({
  queryKey: ["cluster-message", "shown"],
  queryFn: async ({ signal }): Promise<{ now: ClusterMessage | null; next: string | null }> => {
    const { clusterMessage, clusterMessageAt } = await answered(api.GET("/api/v1/master", { signal }));
    return { now: clusterMessage ?? null, next: clusterMessageAt ?? null };
  },
  topics: ["master"],
  // Every page has this: what others need of `stream/news` comes with them.
  news: (change) => (change.kind === "cluster_message" ? { refetch: true } : undefined),
});

/** The one that is set: it is shown, or will be; null: none. For administrators. */
export const messageQuery = query({
  queryKey: ["cluster-message", "set"],
  queryFn: async ({ signal }): Promise<ClusterMessage | null> =>
    (await answered(api.GET("/api/v1/master/cluster_message", { signal }))).clusterMessage ?? null,
  topics: ["master"],
  news: (change) => (change.kind === "cluster_message" ? { refetch: true } : undefined),
});

/**
 * In the place of `former`; from now on or from a moment on, until another one or until it is removed. Raises Refused,
 * with 412 where another one is set by now.
 */
export async function setMessage(
  message: string,
  former: ClusterMessage | null,
  startTime?: string,
  endTime?: string,
): Promise<void> {
  const expected = former ? { "clusterMessage.createdTime": former.createdTime } : { clusterMessage: null };
  await answered(api.PUT("/api/v1/master/cluster_message", { body: { message, startTime, endTime, expected } }));
}

export async function clearMessage(): Promise<void> {
  await answered(api.DELETE("/api/v1/master/cluster_message"));
}
