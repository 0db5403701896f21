/** Creates a model, or edits one. */

import { useState } from "react";
import { createModel, editModel, type Model } from "../services/models";
import { FIELD } from "../ui/Button";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";

export default function ModelDialog(props: { model?: Model; onClose: () => void; onDone: (model: Model) => void }) {
  const { model, onClose, onDone } = props;
  const [name, setName] = useState(model?.name ?? "");
  const [description, setDescription] = useState(model?.description ?? "");
  const [notes, setNotes] = useState(model?.notes ?? "");
  const submit = async () => {
    const texts = { name, description, notes };
    const changed = {
      ...(name !== model?.name && { name }),
      ...(description !== model?.description && { description }),
      ...(notes !== model?.notes && { notes }),
    };
    const done = model ? await editModel(model.id, changed) : await createModel(texts);
    onClose();
    onDone(done);
  };
  return (
    <FormDialog
      title={model ? `Edit model ${model.name}` : "New model"}
      yes={model ? "Save" : "Create"}
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
          <input
            {...ids}
            className={FIELD}
            value={description}
            onChange={(event) => setDescription(event.target.value)}
          />
        )}
      </Field>
      <Field label="Notes">
        {(ids) => (
          <textarea
            {...ids}
            rows={5}
            className={FIELD}
            value={notes}
            onChange={(event) => setNotes(event.target.value)}
          />
        )}
      </Field>
    </FormDialog>
  );
}
