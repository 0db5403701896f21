/** What can be done to a project, by its owner, its workspace's and administrators. */

import { useSuspenseQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { count } from "../format";
import { lazy } from "../parts";
import { archiveProject, deleteProject, type Project } from "../services/projects";
import { meQuery } from "../services/session";
import { openDialog, say } from "../ui/overlays";
import { visible } from "../visible";
import { doAndSay, type Offered } from "./offered";
import { mayChange } from "./states";
import { usePlacesAgain } from "./workspaces";

const ProjectDialog = lazy(() => import("./ProjectDialog"));
const MoveProjectDialog = lazy(() => import("./MoveProjectDialog"));
const ConfirmName = lazy(() => import("./ConfirmName"));

/** `ownerOfWorkspace`: whose workspace it is in. */
export function useProjectActions(): (project: Project, ownerOfWorkspace: number | undefined) => Offered[] {
  const me = useSuspenseQuery(meQuery).data;
  const navigate = useNavigate();
  const again = usePlacesAgain();
  const archive = (project: Project, archived: boolean): Promise<void> => {
    const word = archived ? "Archive" : "Unarchive";
    return doAndSay(
      {
        asked: () => archiveProject(project.id, archived),
        doing: `${word} project ${visible(project.name)}`,
        done: `${word}d project ${visible(project.name)}`,
        undo: () => void archive(project, !archived),
      },
      again,
    );
  };
  const remove = (project: Project) =>
    openDialog((close) => (
      <ConfirmName
        title={`Delete project ${visible(project.name)}?`}
        name={project.name}
        onClose={close}
        onYes={async () => {
          const gone = await deleteProject(project.id);
          say({ text: `${gone ? "Deleted" : "Deleting"} project ${visible(project.name)}` });
          again();
          const params = { workspaceId: project.workspaceId };
          await navigate({ to: "/workspaces/$workspaceId", params, search: {} });
        }}
      >
        {count(project.numExperiments)} experiments are deleted with it, with their checkpoints, metrics and output.
        They cannot be recovered.
      </ConfirmName>
    ));
  return (project, ownerOfWorkspace) => {
    const { name } = project;
    if (!(mayChange(me, project.userId) || me.id === ownerOfWorkspace) || project.immutable) return [];
    const { workspaceId } = project;
    const edit = () =>
      openDialog((close) => (
        <ProjectDialog project={project} workspaceId={workspaceId} onClose={close} onDone={again} />
      ));
    const open: Offered[] = [
      { name: "edit", short: "Edit", title: `Edit project ${visible(name)}`, run: edit },
      {
        name: "move",
        short: "Move",
        title: `Move project ${visible(name)} to another workspace`,
        run: () => openDialog((close) => <MoveProjectDialog project={project} onClose={close} onDone={again} />),
      },
    ];
    return [
      ...(project.archived ? [] : open),
      {
        name: "archive",
        short: project.archived ? "Unarchive" : "Archive",
        title: `${project.archived ? "Unarchive" : "Archive"} project ${visible(name)}`,
        run: () => void archive(project, !project.archived),
      },
      {
        name: "delete",
        short: "Delete",
        title: `Delete project ${visible(name)}`,
        run: () => remove(project),
        danger: true,
      },
    ];
  };
}
