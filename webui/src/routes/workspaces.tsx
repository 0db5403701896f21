/** Workspaces: where projects are filed. */

import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { More } from "../actions/offered";
import { usePlacesAgain, useWorkspaceActions } from "../actions/workspaces";
import { count } from "../format";
import { useCommands } from "../keys/commands";
import { lazy } from "../parts";
import { useLive } from "../services/live";
import { meQuery } from "../services/session";
import { type Workspace, workspacesQuery } from "../services/workspaces";
import { Button, FIELD } from "../ui/Button";
import { Empty, Loading, Problem } from "../ui/notices";
import { openDialog } from "../ui/overlays";
import { Page } from "../ui/Page";
import { SearchField } from "../ui/SearchField";
import { Table } from "../ui/Table";
import { visible } from "../visible";
import { Standing } from "./workspace/standing";

const WorkspaceDialog = lazy(() => import("../actions/WorkspaceDialog"));
const route = getRouteApi("/shell/workspaces");

export function WorkspacesPage() {
  const search = route.useSearch();
  const { q, owner, archived } = search;
  const me = useSuspenseQuery(meQuery).data;
  const navigate = useNavigate();
  const again = usePlacesAgain();
  const actionsOf = useWorkspaceActions();
  const found = useLive(workspacesQuery({ userId: owner === "me" ? me.id : undefined, archived }));
  const rows = found.data?.rows.filter((each) => !q || each.name.toLowerCase().includes(q.toLowerCase()));
  const change = (changed: Partial<typeof search>, replace = false) =>
    void navigate({ to: "/workspaces", search: { ...search, ...changed }, replace });
  const create = () =>
    openDialog((close) => (
      <WorkspaceDialog
        onClose={close}
        onDone={({ id }) => {
          again();
          void navigate({ to: "/workspaces/$workspaceId", params: { workspaceId: id }, search: {} });
        }}
      />
    ));
  useCommands([{ title: "Create a workspace", run: create }]);
  return (
    <Page
      title="Workspaces"
      name="Workspaces"
      aside={
        <>
          <SearchField
            label="Part of the name"
            value={q ?? ""}
            onChange={(to) => change({ q: to || undefined }, true)}
          />
          <select
            aria-label="Owner"
            className={FIELD}
            value={owner ?? ""}
            onChange={(event) => change({ owner: event.target.value === "me" ? "me" : undefined })}
          >
            <option value="">Everyone's</option>
            <option value="me">Mine</option>
          </select>
          <label className="flex min-h-7 items-center gap-1.5">
            <input
              type="checkbox"
              checked={archived ?? false}
              onChange={(event) => change({ archived: event.target.checked || undefined })}
            />
            Include archived
          </label>
          <Button onClick={create}>New workspace</Button>
        </>
      }
    >
      {found.error && !found.data ? (
        <Problem error={found.error} retry={() => void found.refetch()} />
      ) : !rows || !found.data ? (
        <Loading what="workspaces" />
      ) : rows.length === 0 ? (
        <Empty
          title={q || owner ? "No matching workspaces" : "No workspaces yet"}
          command="tenax workspace create NAME"
        >
          A workspace holds projects, and sets where their work runs. At the command line:
        </Empty>
      ) : (
        <>
          <Table
            label="Workspaces"
            rows={rows}
            keyOf={(row) => row.id}
            columns={[
              ...COLUMNS,
              {
                id: "actions",
                title: "Actions",
                cell: (row) => <More of={actionsOf(row)} label={`Actions on workspace ${visible(row.name)}`} />,
              },
            ]}
          />
          {found.data.total > found.data.rows.length && (
            <p className="text-dim">
              The first {count(found.data.rows.length)} of {count(found.data.total)} workspaces, by name.
            </p>
          )}
        </>
      )}
    </Page>
  );
}

const COLUMNS = [
  {
    id: "name",
    title: "Workspace",
    wide: true,
    cell: (row: Workspace) => (
      <Link
        to="/workspaces/$workspaceId"
        params={{ workspaceId: row.id }}
        search={{}}
        className="hover:underline"
        title={visible(row.name)}
      >
        {visible(row.name)}
      </Link>
    ),
  },
  { id: "projects", title: "Projects", align: "right" as const, cell: (row: Workspace) => count(row.numProjects) },
  {
    id: "experiments",
    title: "Experiments",
    align: "right" as const,
    cell: (row: Workspace) => count(row.numExperiments),
  },
  { id: "owner", title: "Owner", cell: (row: Workspace) => row.username || "–" },
  { id: "state", title: "State", cell: (row: Workspace) => <Standing of={row} /> },
  { id: "pinned", title: "Pinned", cell: (row: Workspace) => (row.pinned ? "yes" : "–") },
];
