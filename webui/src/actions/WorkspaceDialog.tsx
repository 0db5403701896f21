/** Creates a workspace, or gives one another name. */

import { useQueryClient } from "@tanstack/react-query";
import { expectedOf, part } from "../editing/merge";
import { useEdit } from "../editing/useEdit";
import { createWorkspace, editWorkspace, type Workspace, workspaceQuery } from "../services/workspaces";
import { FIELD } from "../ui/Button";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";

function textsOf(workspace?: Workspace) {
  return { name: workspace?.name ?? "" };
}

export default function WorkspaceDialog(props: {
  workspace?: Workspace;
  onClose: () => void;
  onDone: (workspace: Workspace) => void;
}) {
  const { workspace, onClose, onDone } = props;
  const client = useQueryClient();
  const edit = useEdit({
    of: workspace,
    valuesOf: textsOf,
    read: async () => workspace && client.fetchQuery({ ...workspaceQuery(workspace.id), staleTime: 0 }),
    labels: { name: "Name" },
  });
  const { name } = edit.values;
  const submit = async () => {
    let done = workspace;
    if (!workspace) done = await createWorkspace({ name });
    await edit.save(async ({ of, values, changed }) => {
      if (of) done = await editWorkspace(of.id, { ...part(values, changed), expected: expectedOf(of, changed) });
    });
    onClose();
    if (done) onDone(done);
  };
  return (
    <FormDialog
      title={workspace ? `Rename workspace ${workspace.name}` : "New workspace"}
      yes={workspace ? "Save" : "Create"}
      onClose={onClose}
      onSubmit={submit}
    >
      {edit.overtaken}
      <Field label="Name" hint="Its pools, its checkpoint storage and who its tasks run as are in its settings.">
        {(ids) => (
          <input
            {...ids}
            required
            className={FIELD}
            value={name}
            onChange={(event) => edit.set({ name: event.target.value })}
          />
        )}
      </Field>
    </FormDialog>
  );
}
