/** Templates: settings that several configurations share. */

import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "./client";
import type { components } from "./schema";

export type Template = components["schemas"]["Template"];

/** Rows that are shown. */
export const TEMPLATES = 500;

export const templatesQuery = queryOptions({
  queryKey: ["templates"],
  queryFn: async ({ signal }): Promise<Template[]> =>
    (await answered(api.GET("/api/v1/templates", { params: { query: { limit: TEMPLATES } }, signal }))).templates,
  staleTime: 30_000,
});

export function templateQuery(name: string) {
  return queryOptions({
    queryKey: ["template", name],
    queryFn: async ({ signal }): Promise<Template> => {
      const params = { path: { templateName: name } };
      return (await answered(api.GET("/api/v1/templates/{templateName}", { params, signal }))).template;
    },
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

export async function changeTemplate(name: string, text: string): Promise<Template> {
  const body = { text, config: {}, workspaceId: 0, validateOnly: false };
  const params = { path: { templateName: name } };
  return (await answered(api.PUT("/api/v1/templates/{templateName}", { params, body }))).template;
}

export async function renameTemplate(oldName: string, newName: string): Promise<Template> {
  return (await answered(api.PATCH("/api/v1/template/rename", { body: { oldName, newName } }))).template;
}

export async function deleteTemplate(name: string): Promise<void> {
  await answered(api.DELETE("/api/v1/templates/{templateName}", { params: { path: { templateName: name } } }));
}
