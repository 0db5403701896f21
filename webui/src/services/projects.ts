/** Projects, with the workspaces that they are in. */

import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "./client";
import { query } from "./live";
import type { components } from "./schema";
import { newsOf } from "./stream/news";

export type Project = components["schemas"]["Project"];

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
