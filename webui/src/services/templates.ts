/** Templates: settings that several configurations share. */

import { answered, api } from "./client";
import { query, removing } from "./live";
import type { components } from "./schema";
import { newsOf } from "./stream/news";

export type Template = components["schemas"]["Template"];

/** Rows that are shown. */
export const TEMPLATES = 500;

/** By name; `name`: a part of it. */
export function templatesQuery(name?: string) {
  return query({
    queryKey: ["templates", name],
    queryFn: async ({ signal }): Promise<{ rows: Template[]; total: number }> => {
      const params = { query: { limit: TEMPLATES, name } };
      const reply = await answered(api.GET("/api/v1/templates", { params, signal }));
      return { rows: reply.templates, total: reply.pagination.total ?? 0 };
    },
    topics: ["templates"],
    news: (change) => newsOf(["template"], change),
  });
}

export function templateQuery(name: string) {
  return query({
    queryKey: ["template", name],
    queryFn: async ({ signal }): Promise<Template> => {
      const params = { path: { templateName: name } };
      return (await answered(api.GET("/api/v1/templates/{templateName}", { params, signal }))).template;
    },
    topics: ["templates"],
    news: (change) => newsOf(["template"], change),
  });
}

/** Raises Refused with all that is wrong, each at its line. `name`: which are checked with it. */
export async function checkTemplate(name: string, text: string, signal?: AbortSignal): Promise<Template> {
  const body = { text, config: {}, workspaceId: 0, validateOnly: true };
  const params = { path: { templateName: name } };
  return (await answered(api.POST("/api/v1/templates/{templateName}", { params, body, signal }))).template;
}

/** `workspaceId` 0: the default one. */
export async function createTemplate(name: string, text: string, workspaceId: number): Promise<Template> {
  const body = { text, config: {}, workspaceId, validateOnly: false };
  const params = { path: { templateName: name } };
  return (await answered(api.POST("/api/v1/templates/{templateName}", { params, body }))).template;
}

/** `of`: when it had been changed last, as it was read. Raises Refused, with 412 where somebody has changed it since. */
export async function changeTemplate(name: string, text: string, of: string | null | undefined): Promise<Template> {
  const body = { text, config: {}, workspaceId: 0, validateOnly: false, expected: { modifiedAt: of ?? null } };
  const params = { path: { templateName: name } };
  return (await answered(api.PUT("/api/v1/templates/{templateName}", { params, body }))).template;
}

export async function renameTemplate(oldName: string, newName: string): Promise<Template> {
  return (await answered(api.PATCH("/api/v1/template/rename", { body: { oldName, newName } }))).template;
}

export async function deleteTemplate(name: string): Promise<void> {
  const params = { path: { templateName: name } };
  const ask = () => answered(api.DELETE("/api/v1/templates/{templateName}", { params }));
  await removing([templateQuery(name).queryKey], ask);
}
