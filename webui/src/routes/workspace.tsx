/** One workspace: its projects, who may do what in it, and what it says about what runs there. */

import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Buttons, More } from "../actions/offered";
import { useProjectActions } from "../actions/projects";
import { usePlacesAgain, useWorkspaceActions } from "../actions/workspaces";
import { count } from "../format";
import { useCommands } from "../keys/commands";
import { lazy } from "../parts";
import { useLive } from "../services/live";
import { type Project, projectsOfQuery } from "../services/projects";
import { type Workspace, workspaceQuery } from "../services/workspaces";
import { Button } from "../ui/Button";
import { Empty, Loading, Problem } from "../ui/notices";
import { openDialog } from "../ui/overlays";
import { Page } from "../ui/Page";
import { Table } from "../ui/Table";
import { Tabs } from "../ui/Tabs";
import { Moment } from "../ui/values";
import { visible } from "../visible";
import { Members } from "./workspace/members";
import { Settings } from "./workspace/settings";
import { Standing } from "./workspace/standing";

const ProjectDialog = lazy(() => import("../actions/ProjectDialog"));
const route = getRouteApi("/shell/workspaces/$workspaceId");

export function WorkspacePage() {
  const { workspaceId } = route.useParams();
  const { tab } = route.useSearch();
  const shown = useLive(workspaceQuery(workspaceId));
  const workspace = shown.data?.id === workspaceId ? shown.data : undefined;
  if (!workspace) {
    return (
      <Page title={`Workspace ${workspaceId}`} name={`Workspace ${workspaceId}`}>
        {shown.error ? (
          <Problem error={shown.error} retry={() => void shown.refetch()} />
        ) : (
          <Loading what="the workspace" />
        )}
      </Page>
    );
  }
  return (
    <Page title={visible(workspace.name)} name={visible(workspace.name)} aside={<About workspace={workspace} />}>
      <Tabs
        label="Parts of this workspace"
        tab={tab}
        first="Projects"
        rest={{ members: "Members", settings: "Settings" }}
      />
      {tab === undefined && <Projects workspace={workspace} />}
      {tab === "members" && <Members workspace={workspace} />}
      {tab === "settings" && <Settings key={workspaceId} workspace={workspace} />}
    </Page>
  );
}

function About({ workspace }: { workspace: Workspace }) {
  const actions = useWorkspaceActions()(workspace);
  useCommands(actions);
  const moving = workspace.archived || !workspace.state.endsWith("UNSPECIFIED");
  return (
    <>
      <p className="text-dim">
        Workspace {workspace.id}
        {workspace.username && ` of ${workspace.username}`}
      </p>
      {moving && <Standing of={workspace} />}
      <Buttons of={actions} />
    </>
  );
}

function Projects({ workspace }: { workspace: Workspace }) {
  const { archived } = route.useSearch();
  const navigate = useNavigate();
  const again = usePlacesAgain();
  const actionsOf = useProjectActions();
  const found = useLive(projectsOfQuery(workspace.id, archived || workspace.archived));
  const create = () =>
    openDialog((close) => (
      <ProjectDialog
        workspaceId={workspace.id}
        onClose={close}
        onDone={({ id }) => {
          again();
          void navigate({ to: "/projects/$projectId", params: { projectId: id } });
        }}
      />
    ));
  const takesProjects = !workspace.archived && !workspace.immutable;
  useCommands(!takesProjects ? [] : [{ title: `Create a project in ${visible(workspace.name)}`, run: create }]);
  if (found.error && !found.data) return <Problem error={found.error} retry={() => void found.refetch()} />;
  if (!found.data) return <Loading what="projects" />;
  const { rows, total } = found.data;
  return (
    <>
      <div className="flex flex-wrap items-center gap-3">
        {takesProjects && <Button onClick={create}>New project</Button>}
        {!workspace.archived && (
          <label className="flex min-h-7 items-center gap-1.5">
            <input
              type="checkbox"
              checked={archived ?? false}
              onChange={(event) =>
                void navigate({
                  to: "/workspaces/$workspaceId",
                  params: { workspaceId: workspace.id },
                  search: { archived: event.target.checked || undefined },
                })
              }
            />
            Include archived
          </label>
        )}
      </div>
      {rows.length === 0 ? (
        <Empty title="No projects yet" command={`tenax project create ${quoted(workspace.name)} NAME`}>
          A project collects experiments that belong together, with notes about them. At the command line:
        </Empty>
      ) : (
        <Table
          label="Projects"
          rows={rows}
          keyOf={(row) => row.id}
          columns={[
            ...COLUMNS,
            {
              id: "actions",
              title: "Actions",
              cell: (row) => (
                <More of={actionsOf(row, workspace.userId)} label={`Actions on project ${visible(row.name)}`} />
              ),
            },
          ]}
        />
      )}
      {total > rows.length && (
        <p className="text-dim">
          The first {count(rows.length)} of {count(total)} projects, by name.
        </p>
      )}
    </>
  );
}

/** As a shell takes it. */
function quoted(name: string): string {
  return /^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
}

const COLUMNS = [
  {
    id: "name",
    title: "Project",
    wide: true,
    cell: (row: Project) => (
      <Link
        to="/projects/$projectId"
        params={{ projectId: row.id }}
        className="hover:underline"
        title={visible(row.name)}
      >
        {visible(row.name)}
      </Link>
    ),
  },
  { id: "key", title: "Key", cell: (row: Project) => row.key },
  { id: "description", title: "Description", wide: true, cell: (row: Project) => row.description || "–" },
  {
    id: "experiments",
    title: "Experiments",
    align: "right" as const,
    cell: (row: Project) => count(row.numExperiments),
  },
  { id: "active", title: "Active", align: "right" as const, cell: (row: Project) => count(row.numActiveExperiments) },
  { id: "last", title: "Newest", cell: (row: Project) => <Moment at={row.lastExperimentStartedAt} /> },
  { id: "owner", title: "Owner", cell: (row: Project) => row.username || "–" },
  { id: "state", title: "State", cell: (row: Project) => <Standing of={row} /> },
];
