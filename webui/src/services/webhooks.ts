/** Webhooks: addresses that are told of what happens. */

import { answered, api } from "./client";
import { type Query, query, removing } from "./live";
import type { Once } from "./once";
import type { components } from "./schema";
import { newsOf } from "./stream/news";

export type Webhook = components["schemas"]["Webhook"];
export type WebhookType = components["schemas"]["WebhookType"];
export type WebhookMode = components["schemas"]["WebhookMode"];
export type Delivery = components["schemas"]["Delivery"];
export type Trigger = Pick<components["schemas"]["Trigger"], "triggerType" | "condition">;

/** Deliveries that are shown. */
export const DELIVERIES = 50;

export const webhooksQuery = query({
  queryKey: ["webhooks"],
  queryFn: async ({ signal }): Promise<Webhook[]> => (await answered(api.GET("/api/v1/webhooks", { signal }))).webhooks,
  topics: ["webhooks"],
  news: (change) => newsOf(["webhook"], change),
});

export function deliveriesQuery(webhookId: number): Query<{ rows: Delivery[]; total: number }> {
  return query({
    queryKey: ["deliveries", webhookId],
    queryFn: async ({ signal }) => {
      const params = { path: { webhookId }, query: { limit: DELIVERIES } };
      const reply = await answered(api.GET("/api/v1/webhooks/{webhookId}/deliveries", { params, signal }));
      return { rows: reply.deliveries, total: reply.pagination.total ?? 0 };
    },
    topics: ["webhooks"],
    news: (change) => newsOf(["delivery"], change, webhookId),
    everyMs: 1000,
  });
}

export interface NewWebhook {
  name: string;
  url: string;
  webhookType: WebhookType;
  mode: WebhookMode;
  triggers: Trigger[];
  /** null: of all workspaces. */
  workspaceId: number | null;
}

export async function createWebhook(made: NewWebhook, once: Once): Promise<Webhook> {
  const triggers = made.triggers.map((trigger) => ({ ...trigger, id: 0, webhookId: 0 }));
  const body = { ...made, triggers, id: 0 };
  return (await once.send(body, (headers) => answered(api.POST("/api/v1/webhooks", { body, headers })))).webhook;
}

/** `from`: where it sends now. Raises Refused, with 412 where it sends elsewhere by now. */
export async function readdressWebhook(webhookId: number, url: string, from: string): Promise<void> {
  const body = { url, expected: { url: from } };
  await answered(api.PATCH("/api/v1/webhooks/{webhookId}", { params: { path: { webhookId } }, body }));
}

export async function deleteWebhook(webhookId: number): Promise<void> {
  const params = { path: { webhookId } };
  const ask = () => answered(api.DELETE("/api/v1/webhooks/{webhookId}", { params }));
  await removing([deliveriesQuery(webhookId).queryKey], ask);
}

/** Sends it a message now. Whether it was taken, and how it was answered. */
export async function testWebhook(webhookId: number): Promise<{ completed: boolean; outcome: string }> {
  const params = { path: { webhookId } };
  const { completed, outcome } = await answered(api.POST("/api/v1/webhooks/{webhookId}/test", { params }));
  return { completed, outcome: outcome ?? "" };
}
