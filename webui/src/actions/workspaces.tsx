/** What can be done to a workspace, by its owner and administrators; and by everyone: to pin it. */

import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { count } from "../format";
import { lazy } from "../parts";
import { meQuery } from "../services/session";
import { archiveWorkspace, deleteWorkspace, pinWorkspace, type Workspace } from "../services/workspaces";
import { openDialog, say } from "../ui/overlays";
import { visible } from "../visible";
import { doAndSay, type Offered } from "./offered";
import { mayChange } from "./states";

const WorkspaceDialog = lazy(() => import("./WorkspaceDialog"));
const ConfirmName = lazy(() => import("./ConfirmName"));

/** Asks anew for what shows workspaces and projects. */
export function usePlacesAgain(): () => void {
  const client = useQueryClient();
  return () => {
    for (const kind of ["workspaces", "workspace", "projects", "project"]) {
      void client.invalidateQueries({ queryKey: [kind] });
    }
  };
}

/** For a row of a table, or for the page of one. */
export function useWorkspaceActions(): (workspace: Workspace) => Offered[] {
  const me = useSuspenseQuery(meQuery).data;
  const navigate = useNavigate();
  const again = usePlacesAgain();
  const archive = (workspace: Workspace, archived: boolean): Promise<void> => {
    const word = archived ? "Archive" : "Unarchive";
    return doAndSay(
      {
        asked: () => archiveWorkspace(workspace.id, archived),
        doing: `${word} workspace ${visible(workspace.name)}`,
        done: `${word}d workspace ${visible(workspace.name)}`,
        undo: () => void archive(workspace, !archived),
      },
      again,
    );
  };
  const remove = (workspace: Workspace) =>
    openDialog((close) => (
      <ConfirmName
        title={`Delete workspace ${visible(workspace.name)}?`}
        name={workspace.name}
        onClose={close}
        onYes={async () => {
          const gone = await deleteWorkspace(workspace.id);
          say({ text: `${gone ? "Deleted" : "Deleting"} workspace ${visible(workspace.name)}` });
          await navigate({ to: "/workspaces" });
          again();
        }}
      >
        {count(workspace.numProjects)} projects and {count(workspace.numExperiments)} experiments are deleted with it,
        with their checkpoints, metrics and output, and so are its templates. Commands and tasks in it are ended. They
        cannot be recovered.
      </ConfirmName>
    ));
  return (workspace) => {
    const { name } = workspace;
    const pin: Offered = {
      short: workspace.pinned ? "Unpin" : "Pin",
      title: `${workspace.pinned ? "Unpin" : "Pin"} workspace ${visible(name)}`,
      run: () =>
        void pinWorkspace(workspace.id, !workspace.pinned)
          .catch((error: unknown) => say({ text: error instanceof Error ? error.message : String(error) }))
          .finally(again),
    };
    if (!mayChange(me, workspace.userId) || workspace.immutable) return [pin];
    const edit = () => openDialog((close) => <WorkspaceDialog workspace={workspace} onClose={close} onDone={again} />);
    return [
      pin,
      ...(workspace.archived
        ? []
        : [{ name: "edit", short: "Rename", title: `Rename workspace ${visible(name)}`, run: edit } as const]),
      {
        name: "archive",
        short: workspace.archived ? "Unarchive" : "Archive",
        title: `${workspace.archived ? "Unarchive" : "Archive"} workspace ${visible(name)}`,
        run: () => void archive(workspace, !workspace.archived),
      },
      {
        name: "delete",
        short: "Delete",
        title: `Delete workspace ${visible(name)}`,
        run: () => remove(workspace),
        danger: true,
      },
    ];
  };
}
