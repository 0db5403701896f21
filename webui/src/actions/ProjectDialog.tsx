/** Creates a project in a workspace, or edits one; only what was changed is sent. */

import { useState } from "react";
import { createProject, editProject, type Project } from "../services/projects";
import { FIELD } from "../ui/Button";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";

export default function ProjectDialog(props: {
  project?: Project;
  workspaceId: number;
  onClose: () => void;
  onDone: (project: Project) => void;
}) {
  const { project, onClose, onDone } = props;
  const [name, setName] = useState(project?.name ?? "");
  const [description, setDescription] = useState(project?.description ?? "");
  const [key, setKey] = useState(project?.key ?? "");
  const submit = async () => {
    const edit = {
      ...(name !== project?.name && { name }),
      ...(description !== project?.description && { description }),
      ...(key !== project?.key && { key }),
    };
    const texts = { name, description, key };
    const done = project ? await editProject(project.id, edit) : await createProject(props.workspaceId, texts);
    onClose();
    onDone(done);
  };
  return (
    <FormDialog
      title={project ? `Edit project ${project.name}` : "New project"}
      yes={project ? "Save" : "Create"}
      onClose={onClose}
      onSubmit={submit}
    >
      <Field label="Name">
        {(ids) => (
          <input {...ids} required className={FIELD} value={name} onChange={(event) => setName(event.target.value)} />
        )}
      </Field>
      <Field label="Description">
        {(ids) => (
          <textarea
            {...ids}
            rows={3}
            className={FIELD}
            value={description}
            onChange={(event) => setDescription(event.target.value)}
          />
        )}
      </Field>
      <Field
        label="Key"
        hint={`One to five letters and digits.${project ? "" : " None given: one is made of the name."}`}
      >
        {(ids) => (
          <input
            {...ids}
            required={project !== undefined}
            maxLength={5}
            className={`${FIELD} max-w-32`}
            value={key}
            onChange={(event) => setKey(event.target.value)}
          />
        )}
      </Field>
    </FormDialog>
  );
}
