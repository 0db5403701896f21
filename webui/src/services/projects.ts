/** Projects, with the workspaces that they are in, and their notes. */

import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "./client";
import { query, removing } from "./live";
import type { components } from "./schema";
import { newsOf } from "./stream/news";

export type Project = components["schemas"]["Project"];
export type Note = components["schemas"]["Note"];
export type ProjectTexts = components["schemas"]["PatchProject"];

/** Rows that are shown. */
export const MAX_PROJECTS = 500;
const RECENT = 5;

export function projectQuery(id: number) {
  return query({
    queryKey: ["project", id],
    queryFn: async ({ signal }): Promise<Project> =>
      (await answered(api.GET("/api/v1/projects/{projectId}", { params: { path: { projectId: id } }, signal })))
        .project,
    topics: ["workspaces"],
    news: (change, project) => newsOf(["project"], change, id) ?? newsOf(["workspace"], change, project.workspaceId),
  });
}

/** All that take experiments, by workspace and name. */
export const projectsQuery = queryOptions({
  queryKey: ["projects"],
  queryFn: async ({ signal }): Promise<Project[]> => {
    // Workspace 0: all of them.
    const params = { path: { workspaceId: 0 }, query: { archived: false } };
    const reply = await answered(api.GET("/api/v1/workspaces/{workspaceId}/projects", { params, signal }));
    const nameOf = (project: Project) => `${project.workspaceName} / ${project.name}`;
    return [...reply.projects].sort((a, b) => nameOf(a).localeCompare(nameOf(b)));
  },
  staleTime: 30_000,
});

/** Those of a workspace, by name. */
export function projectsOfQuery(workspaceId: number, archived = false) {
  return query({
    queryKey: ["projects", workspaceId, archived],
    queryFn: async ({ signal }) => {
      const asked = { limit: MAX_PROJECTS, archived: archived ? undefined : false, sortBy: "SORT_BY_NAME" as const };
      const params = { path: { workspaceId }, query: asked };
      const reply = await answered(api.GET("/api/v1/workspaces/{workspaceId}/projects", { params, signal }));
      return { rows: reply.projects, total: reply.pagination.total ?? 0 };
    },
    topics: ["workspaces"],
    news: (change) => newsOf(["project", "workspace"], change),
  });
}

/** Those that whoever looks has opened last, the newest first. */
export const recentProjectsQuery = query({
  queryKey: ["projects", "recent"],
  queryFn: async ({ signal }): Promise<Project[]> => {
    const params = { query: { limit: RECENT } };
    return (await answered(api.GET("/api/v1/user/projects/activity", { params, signal }))).projects;
  },
  topics: ["workspaces"],
  news: (change) => newsOf(["project", "workspace"], change),
});

export async function sawProject(id: number): Promise<void> {
  const body = {
    activityType: "ACTIVITY_TYPE_GET" as const,
    entityType: "ENTITY_TYPE_PROJECT" as const,
    entityId: id,
  };
  await answered(api.POST("/api/v1/users/activity", { body }));
}

export async function createProject(workspaceId: number, texts: ProjectTexts): Promise<Project> {
  const params = { path: { workspaceId } };
  const body = { name: texts.name ?? "", description: texts.description ?? "", key: texts.key || null };
  return (await answered(api.POST("/api/v1/workspaces/{workspaceId}/projects", { params, body }))).project;
}

/** What is absent stays. */
export async function editProject(id: number, texts: ProjectTexts): Promise<Project> {
  const params = { path: { projectId: id } };
  return (await answered(api.PATCH("/api/v1/projects/{projectId}", { params, body: texts }))).project;
}

export async function archiveProject(id: number, archived: boolean): Promise<void> {
  const params = { path: { projectId: id } };
  if (archived) await answered(api.POST("/api/v1/projects/{projectId}/archive", { params }));
  else await answered(api.POST("/api/v1/projects/{projectId}/unarchive", { params }));
}

export async function moveProject(id: number, destinationWorkspaceId: number): Promise<void> {
  const params = { path: { projectId: id } };
  await answered(api.POST("/api/v1/projects/{projectId}/move", { params, body: { destinationWorkspaceId } }));
}

/** Whether it is gone already; else it goes in the background. */
export async function deleteProject(id: number): Promise<boolean> {
  const params = { path: { projectId: id } };
  const lists = ["experiments", "listed-trials"].map((kind) => [kind, { projectId: id }]);
  const shown = [projectQuery(id).queryKey, ...lists];
  return (await removing(shown, () => answered(api.DELETE("/api/v1/projects/{projectId}", { params })))).completed;
}

/** Replaces all notes, where `expected` are still there. Raises Refused where somebody else has changed them. */
export async function putNotes(id: number, notes: Note[], expected: Note[]): Promise<Note[]> {
  const params = { path: { projectId: id } };
  return (await answered(api.PUT("/api/v1/projects/{projectId}/notes", { params, body: { notes, expected } }))).notes;
}
