/** One project: its experiments, what is noted about them, and what it is called. */

import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Suspense, useEffect } from "react";
import { Buttons } from "../actions/offered";
import { useProjectActions } from "../actions/projects";
import { mayChange } from "../actions/states";
import { count } from "../format";
import { useCommands } from "../keys/commands";
import { lazy } from "../parts";
import { useLive } from "../services/live";
import { type Project, projectQuery, recentProjectsQuery, sawProject } from "../services/projects";
import { meQuery } from "../services/session";
import { workspaceQuery } from "../services/workspaces";
import { Facts } from "../ui/Facts";
import { Loading, Problem } from "../ui/notices";
import { Page } from "../ui/Page";
import { Tabs } from "../ui/Tabs";
import { Moment } from "../ui/values";
import { visible } from "../visible";
import { Rows } from "./experiments";
import { Standing } from "./workspace/standing";

const Notes = lazy(() => import("../notes/Notes"));
const route = getRouteApi("/shell/projects/$projectId");

export function ProjectPage() {
  const { projectId } = route.useParams();
  const { tab, note, ...search } = route.useSearch();
  const shown = useLive(projectQuery(projectId));
  useSeen(projectId);
  const project = shown.data?.id === projectId ? shown.data : undefined;
  const name = project ? visible(`${project.workspaceName} / ${project.name}`) : `Project ${projectId}`;
  if (!project && (shown.error || tab)) {
    return (
      <Page title={name} name={name}>
        {shown.error ? (
          <Problem error={shown.error} retry={() => void shown.refetch()} />
        ) : (
          <Loading what="the project" />
        )}
      </Page>
    );
  }
  const title = project ? <Title project={project} /> : name;
  const tabs = (
    <Tabs
      label="Parts of this project"
      tab={tab}
      first="Experiments"
      rest={{
        notes: project?.notes?.length ? `Notes (${count(project.notes.length)})` : "Notes",
        settings: "Settings",
      }}
    />
  );
  if (!project || tab === undefined) {
    return <Rows title={title} name={name} search={search} projectId={projectId} tabs={tabs} />;
  }
  return (
    <Page title={title} name={name} aside={project.archived && <Standing of={project} />}>
      {tabs}
      {tab === "notes" ? <ItsNotes project={project} at={(note ?? 1) - 1} /> : <Settings project={project} />}
    </Page>
  );
}

/** It is among those that were opened last, from now on. */
function useSeen(projectId: number): void {
  const client = useQueryClient();
  useEffect(() => {
    sawProject(projectId)
      .then(() => client.invalidateQueries({ queryKey: recentProjectsQuery.queryKey }))
      // One that is not there is nothing to remember, and the page says so.
      .catch(() => {});
  }, [projectId, client]);
}

function Title({ project }: { project: Project }) {
  return (
    <>
      <Link
        to="/workspaces/$workspaceId"
        params={{ workspaceId: project.workspaceId }}
        search={{}}
        className="underline decoration-line hover:decoration-current"
      >
        {visible(project.workspaceName)}
      </Link>
      {" / "}
      {visible(project.name)}
    </>
  );
}

function useOwnerOfWorkspace(project: Project): number | undefined {
  return useLive(workspaceQuery(project.workspaceId)).data?.userId;
}

function ItsNotes({ project, at }: { project: Project; at: number }) {
  const me = useSuspenseQuery(meQuery).data;
  const navigate = useNavigate();
  const owner = useOwnerOfWorkspace(project);
  if (owner === undefined) return <Loading what="the notes" />;
  const mayEdit = !project.archived && (mayChange(me, project.userId) || me.id === owner);
  const open = (to: number) =>
    void navigate({
      to: "/projects/$projectId",
      params: { projectId: project.id },
      search: { tab: "notes", note: to + 1 },
      replace: true,
    });
  return (
    <Suspense fallback={<Loading what="the notes" />}>
      <Notes key={project.id} project={project} userId={me.id ?? 0} mayEdit={mayEdit} at={at} open={open} />
    </Suspense>
  );
}

function Settings({ project }: { project: Project }) {
  const actions = useProjectActions()(project, useOwnerOfWorkspace(project));
  useCommands(actions);
  return (
    <>
      {project.description && <p className="max-w-[80ch] whitespace-pre-line break-words">{project.description}</p>}
      <Facts
        facts={[
          ["Number", project.id],
          ["Key", project.key],
          ["Workspace", visible(project.workspaceName)],
          ["Owner", project.username || "nobody"],
          ["State", <Standing key="s" of={project} />],
          ["Experiments", count(project.numExperiments)],
          ["Active experiments", count(project.numActiveExperiments)],
          ["Trials", count(project.numRuns)],
          ["Newest experiment", <Moment key="n" at={project.lastExperimentStartedAt} />],
        ]}
      />
      {actions.length > 0 ? (
        <p className="flex flex-wrap gap-2">
          <Buttons of={actions} />
        </p>
      ) : (
        <p className="text-dim">
          {project.immutable
            ? "Experiments that name no project go here. Only its notes can be changed."
            : "Only its owner, the owner of its workspace and administrators can change it."}
        </p>
      )}
    </>
  );
}
