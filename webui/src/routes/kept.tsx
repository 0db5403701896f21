/** Beside every page: workspaces that one has pinned, and projects that one has opened last. */

import type { QueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { ahead, useLive } from "../services/live";
import { recentProjectsQuery } from "../services/projects";
import { workspacesQuery } from "../services/workspaces";
import { visible } from "../visible";

/** More have no room beside a page; all of them are on theirs. */
const MAX_PINNED = 5;

const pinnedQuery = workspacesQuery({ pinned: true });

/** Ask for it before it is drawn. */
export function lookAhead(client: QueryClient): void {
  ahead(client, pinnedQuery);
  ahead(client, recentProjectsQuery);
}

const LOOK = {
  className: "block min-h-6 truncate rounded-md px-2 leading-6 text-dim hover:bg-hover hover:text-text",
  activeProps: { className: "bg-hover !text-text" },
};

export function Kept() {
  const pinned = useLive(pinnedQuery).data?.rows.slice(0, MAX_PINNED) ?? [];
  const recent = useLive(recentProjectsQuery).data ?? [];
  return (
    <div className="mt-3 mb-2 flex min-h-0 flex-1 flex-col gap-2 overflow-y-auto">
      {pinned.length > 0 && (
        <Group title="Pinned">
          {pinned.map((each) => (
            <li key={each.id}>
              <Link
                to="/workspaces/$workspaceId"
                params={{ workspaceId: each.id }}
                title={visible(each.name)}
                {...LOOK}
              >
                {visible(each.name)}
              </Link>
            </li>
          ))}
        </Group>
      )}
      {recent.length > 0 && (
        <Group title="Recently opened">
          {recent.map((each) => (
            <li key={each.id}>
              <Link
                to="/projects/$projectId"
                params={{ projectId: each.id }}
                title={visible(`${each.workspaceName} / ${each.name}`)}
                {...LOOK}
              >
                {visible(each.name)}
              </Link>
            </li>
          ))}
        </Group>
      )}
    </div>
  );
}

function Group({ title, children }: { title: string; children: ReactNode }) {
  return (
    <nav aria-label={title}>
      <p aria-hidden="true" className="px-2 text-dim text-sm">
        {title}
      </p>
      <ul>{children}</ul>
    </nav>
  );
}
