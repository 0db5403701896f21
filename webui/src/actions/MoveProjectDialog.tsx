/** Moves a project, with all that is filed in it, into another workspace. */

import { useState } from "react";
import { useLive } from "../services/live";
import { moveProject, type Project } from "../services/projects";
import { workspacesQuery } from "../services/workspaces";
import { FIELD } from "../ui/Button";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";
import { Problem } from "../ui/notices";
import { say } from "../ui/overlays";
import { visible } from "../visible";
import { doAndSay } from "./offered";

export default function MoveProjectDialog(props: { project: Project; onClose: () => void; onDone: () => void }) {
  const { project, onClose, onDone } = props;
  const workspaces = useLive(workspacesQuery({}));
  const [picked, setPicked] = useState("");
  const back = () =>
    void doAndSay(
      {
        asked: () => moveProject(project.id, project.workspaceId),
        doing: `Move project ${visible(project.name)} back`,
        done: `Moved project ${visible(project.name)} back`,
      },
      onDone,
    );
  const submit = async () => {
    await moveProject(project.id, Number(picked));
    onClose();
    const undo = workspaces.data?.rows.some((each) => each.id === project.workspaceId && !each.immutable)
      ? back
      : undefined;
    say({ text: `Moved project ${visible(project.name)}`, undo });
    onDone();
  };
  const goals = workspaces.data?.rows.filter((each) => each.id !== project.workspaceId && !each.immutable);
  return (
    <FormDialog title={`Move project ${visible(project.name)}`} yes="Move" onClose={onClose} onSubmit={submit}>
      {workspaces.error && !workspaces.data ? (
        <Problem error={workspaces.error} retry={() => void workspaces.refetch()} />
      ) : goals?.length === 0 ? (
        <p>There is no other workspace to move it to. Create one first.</p>
      ) : (
        <Field label="To the workspace" hint="Its experiments, its notes and their owners stay the same.">
          {(ids) => (
            <select
              {...ids}
              required
              className={FIELD}
              value={picked}
              onChange={(event) => setPicked(event.target.value)}
            >
              <option value="">{goals ? "Choose one" : "Loading…"}</option>
              {goals?.map((each) => (
                <option key={each.id} value={each.id}>
                  {visible(each.name)}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
    </FormDialog>
  );
}
