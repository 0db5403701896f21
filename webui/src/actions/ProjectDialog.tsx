/** Creates a project in a workspace, or edits one; only what was changed is sent. */

import { useQueryClient } from "@tanstack/react-query";
import { expectedOf, part } from "../editing/merge";
import { useEdit } from "../editing/useEdit";
import { createProject, editProject, type Project, projectQuery } from "../services/projects";
import { FIELD } from "../ui/Button";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";

const LABELS = { name: "Name", description: "Description", key: "Key" };

function textsOf(project?: Project) {
  return { name: project?.name ?? "", description: project?.description ?? "", key: project?.key ?? "" };
}

export default function ProjectDialog(props: {
  project?: Project;
  workspaceId: number;
  onClose: () => void;
  onDone: (project: Project) => void;
}) {
  const { project, onClose, onDone } = props;
  const client = useQueryClient();
  const edit = useEdit({
    of: project,
    valuesOf: textsOf,
    read: async () => project && client.fetchQuery({ ...projectQuery(project.id), staleTime: 0 }),
    labels: LABELS,
  });
  const texts = edit.values;
  const submit = async () => {
    let done = project;
    if (!project) done = await createProject(props.workspaceId, texts);
    await edit.save(async ({ of, values, changed }) => {
      if (of) done = await editProject(of.id, { ...part(values, changed), expected: expectedOf(of, changed) });
    });
    onClose();
    if (done) onDone(done);
  };
  return (
    <FormDialog
      title={project ? `Edit project ${project.name}` : "New project"}
      yes={project ? "Save" : "Create"}
      onClose={onClose}
      onSubmit={submit}
    >
      {edit.overtaken}
      <Field label="Name">
        {(ids) => (
          <input
            {...ids}
            required
            className={FIELD}
            value={texts.name}
            onChange={(event) => edit.set({ name: event.target.value })}
          />
        )}
      </Field>
      <Field label="Description">
        {(ids) => (
          <textarea
            {...ids}
            rows={3}
            className={FIELD}
            value={texts.description}
            onChange={(event) => edit.set({ description: event.target.value })}
          />
        )}
      </Field>
      <Field
        label="Key"
        hint={`One to five letters and digits.${project ? "" : " Leave empty to derive it from the name."}`}
      >
        {(ids) => (
          <input
            {...ids}
            required={project !== undefined}
            maxLength={5}
            className={`${FIELD} max-w-32`}
            value={texts.key}
            onChange={(event) => edit.set({ key: event.target.value })}
          />
        )}
      </Field>
    </FormDialog>
  );
}
