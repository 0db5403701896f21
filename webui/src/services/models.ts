/** The model registry: models, and the checkpoints that are their versions. */

import { answered, api } from "./client";
import { query, removing } from "./live";
import type { Once } from "./once";
import type { components } from "./schema";
import { newsOf } from "./stream/news";

export type Model = components["schemas"]["Model"];
export type ModelVersion = components["schemas"]["ModelVersion"];

/** Rows that are shown. */
export const MODELS = 500;

export function modelsQuery(search: { name?: string; archived?: boolean }) {
  return query({
    queryKey: ["models", search],
    queryFn: async ({ signal }) => {
      const asked = {
        limit: MODELS,
        name: search.name,
        archived: search.archived ? undefined : false,
        sortBy: "SORT_BY_LAST_UPDATED_TIME" as const,
        orderBy: "ORDER_BY_DESC" as const,
      };
      const reply = await answered(api.GET("/api/v1/models", { params: { query: asked }, signal }));
      return { rows: reply.models, total: reply.pagination.total ?? 0 };
    },
    topics: ["models"],
    news: (change) => newsOf(["model", "model_version"], change),
  });
}

/** One model and its versions, the newest first. `name`: or its number. */
export function modelQuery(name: string) {
  return query({
    queryKey: ["model", name],
    queryFn: async ({ signal }) => {
      const asked = { limit: MODELS, orderBy: "ORDER_BY_DESC" as const };
      const params = { path: { modelName: name }, query: asked };
      const reply = await answered(api.GET("/api/v1/models/{modelName}/versions", { params, signal }));
      return { model: reply.model, versions: reply.modelVersions, total: reply.pagination.total ?? 0 };
    },
    topics: ["models"],
    news: (change) => newsOf(["model", "model_version"], change),
  });
}

export interface ModelTexts {
  name: string;
  description: string;
  notes: string;
}

export async function createModel(texts: ModelTexts): Promise<Model> {
  return (await answered(api.POST("/api/v1/models", { body: { ...texts, labels: [], metadata: {} } }))).model;
}

/** What is absent stays. Raises Refused, with 412 where `expected` is not there any more. */
export async function editModel(
  id: number,
  texts: Partial<ModelTexts>,
  expected: Record<string, unknown>,
): Promise<Model> {
  const params = { path: { modelName: String(id) } };
  return (await answered(api.PATCH("/api/v1/models/{modelName}", { params, body: { ...texts, expected } }))).model;
}

export async function archiveModel(id: number, archived: boolean): Promise<void> {
  const params = { path: { modelName: String(id) } };
  if (archived) await answered(api.POST("/api/v1/models/{modelName}/archive", { params }));
  else await answered(api.POST("/api/v1/models/{modelName}/unarchive", { params }));
}

export async function deleteModel({ id, name }: Model): Promise<void> {
  const params = { path: { modelName: String(id) } };
  const shown = [String(id), name].map((named) => modelQuery(named).queryKey);
  await removing(shown, () => answered(api.DELETE("/api/v1/models/{modelName}", { params })));
}

/** The number of the version that a checkpoint has become. */
export async function registerVersion(
  modelId: number,
  version: { checkpointUuid: string; name: string; notes: string },
  once: Once,
): Promise<number> {
  const params = { path: { modelName: String(modelId) } };
  const body = { ...version, comment: "", labels: [], metadata: {} };
  const reply = await once.send([params, body], (headers) =>
    answered(api.POST("/api/v1/models/{modelName}/versions", { params, body, headers })),
  );
  return reply.modelVersion.version;
}

/** One version. `name`: that of its model, or its number. */
export function versionQuery(name: string, version: number) {
  return query({
    queryKey: ["model_version", name, version],
    queryFn: async ({ signal }): Promise<ModelVersion> => {
      const params = { path: { modelName: name, version } };
      return (await answered(api.GET("/api/v1/models/{modelName}/versions/{version}", { params, signal })))
        .modelVersion;
    },
    topics: ["models"],
    news: (change) => newsOf(["model", "model_version"], change),
  });
}

export type VersionEdit = components["schemas"]["PatchModelVersion"];

/** What is absent stays. */
export async function editVersion(modelId: number, version: number, edit: VersionEdit): Promise<void> {
  const params = { path: { modelName: String(modelId), version } };
  await answered(api.PATCH("/api/v1/models/{modelName}/versions/{version}", { params, body: edit }));
}

export async function deleteVersion({ id, name }: Model, version: number): Promise<void> {
  const params = { path: { modelName: String(id), version } };
  const shown = [String(id), name].map((named) => versionQuery(named, version).queryKey);
  await removing(shown, () => answered(api.DELETE("/api/v1/models/{modelName}/versions/{version}", { params })));
}
