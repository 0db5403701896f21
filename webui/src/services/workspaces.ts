/** Workspaces: where projects are filed, with the defaults for what runs in them. */

import { answered, api } from "./client";
import { query, removing } from "./live";
import type { components } from "./schema";
import { newsOf } from "./stream/news";

export type Workspace = components["schemas"]["Workspace"];
export type WorkspaceSettings = components["schemas"]["WorkspaceSettings"];
export type WorkspaceEdit = components["schemas"]["PatchWorkspace"];

/** Rows that are shown. */
export const MAX_WORKSPACES = 500;

interface WorkspaceSearch {
  userId?: number;
  archived?: boolean;
  pinned?: boolean;
}

export function workspacesQuery(search: WorkspaceSearch) {
  return query({
    queryKey: ["workspaces", search],
    queryFn: async ({ signal }) => {
      const asked = {
        limit: MAX_WORKSPACES,
        userIds: search.userId === undefined ? undefined : [search.userId],
        archived: search.archived ? undefined : false,
        pinned: search.pinned,
        sortBy: "SORT_BY_NAME" as const,
      };
      const reply = await answered(api.GET("/api/v1/workspaces", { params: { query: asked }, signal }));
      return { rows: reply.workspaces, total: reply.pagination.total ?? 0 };
    },
    topics: ["workspaces"],
    news: (change) => newsOf(["workspace", "project"], change),
  });
}

export function workspaceQuery(id: number) {
  return query({
    queryKey: ["workspace", id],
    queryFn: async ({ signal }): Promise<Workspace> =>
      (await answered(api.GET("/api/v1/workspaces/{workspaceId}", { params: { path: { workspaceId: id } }, signal })))
        .workspace,
    topics: ["workspaces"],
    news: (change) => newsOf(["workspace"], change, id) ?? newsOf(["project"], change),
  });
}

export async function createWorkspace(settings: WorkspaceSettings): Promise<Workspace> {
  return (await answered(api.POST("/api/v1/workspaces", { body: settings }))).workspace;
}

/** What is absent stays. */
export async function editWorkspace(id: number, settings: WorkspaceEdit): Promise<Workspace> {
  const params = { path: { workspaceId: id } };
  return (await answered(api.PATCH("/api/v1/workspaces/{workspaceId}", { params, body: settings }))).workspace;
}

export async function archiveWorkspace(id: number, archived: boolean): Promise<void> {
  const params = { path: { workspaceId: id } };
  if (archived) await answered(api.POST("/api/v1/workspaces/{workspaceId}/archive", { params }));
  else await answered(api.POST("/api/v1/workspaces/{workspaceId}/unarchive", { params }));
}

/** For whoever does it; nobody else sees it. */
export async function pinWorkspace(id: number, pinned: boolean): Promise<void> {
  const params = { path: { workspaceId: id } };
  if (pinned) await answered(api.POST("/api/v1/workspaces/{workspaceId}/pin", { params }));
  else await answered(api.POST("/api/v1/workspaces/{workspaceId}/unpin", { params }));
}

/** Whether it is gone already; else it goes in the background. */
export async function deleteWorkspace(id: number): Promise<boolean> {
  const params = { path: { workspaceId: id } };
  const ask = () => answered(api.DELETE("/api/v1/workspaces/{workspaceId}", { params }));
  return (await removing([workspaceQuery(id).queryKey, ["projects", id]], ask)).completed;
}
