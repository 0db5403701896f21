/** Creates a workspace, or gives one another name. */

import { useState } from "react";
import { createWorkspace, editWorkspace, type Workspace } from "../services/workspaces";
import { FIELD } from "../ui/Button";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";

export default function WorkspaceDialog(props: {
  workspace?: Workspace;
  onClose: () => void;
  onDone: (workspace: Workspace) => void;
}) {
  const { workspace, onClose, onDone } = props;
  const [name, setName] = useState(workspace?.name ?? "");
  const submit = async () => {
    const done = workspace ? await editWorkspace(workspace.id, { name }) : await createWorkspace({ name });
    onClose();
    onDone(done);
  };
  return (
    <FormDialog
      title={workspace ? `Rename workspace ${workspace.name}` : "New workspace"}
      yes={workspace ? "Save" : "Create"}
      onClose={onClose}
      onSubmit={submit}
    >
      <Field label="Name" hint="Its pools, checkpoint storage and user of tasks are in its settings.">
        {(ids) => (
          <input {...ids} required className={FIELD} value={name} onChange={(event) => setName(event.target.value)} />
        )}
      </Field>
    </FormDialog>
  );
}
