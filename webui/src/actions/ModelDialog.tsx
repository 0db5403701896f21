/** Creates a model, or edits one. */

import { useQueryClient } from "@tanstack/react-query";
import { expectedOf, part } from "../editing/merge";
import { useEdit } from "../editing/useEdit";
import { createModel, editModel, type Model, type ModelTexts, modelQuery } from "../services/models";
import { FIELD } from "../ui/Button";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";

const LABELS: Record<keyof ModelTexts, string> = { name: "Name", description: "Description", notes: "Notes" };

function textsOf(model?: Model): ModelTexts {
  return { name: model?.name ?? "", description: model?.description ?? "", notes: model?.notes ?? "" };
}

export default function ModelDialog(props: { model?: Model; onClose: () => void; onDone: (model: Model) => void }) {
  const { model, onClose, onDone } = props;
  const client = useQueryClient();
  const edit = useEdit<Model | undefined, ModelTexts>({
    of: model,
    valuesOf: textsOf,
    read: async () => model && (await client.fetchQuery({ ...modelQuery(String(model.id)), staleTime: 0 })).model,
    labels: LABELS,
  });
  const texts = edit.values;
  const submit = async () => {
    let done = model;
    if (!model) done = await createModel(texts);
    await edit.save(async ({ of, values, changed }) => {
      if (of) done = await editModel(of.id, part(values, changed), expectedOf(of, changed));
    });
    onClose();
    if (done) onDone(done);
  };
  return (
    <FormDialog
      title={model ? `Edit model ${model.name}` : "New model"}
      yes={model ? "Save" : "Create"}
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
          <input
            {...ids}
            className={FIELD}
            value={texts.description}
            onChange={(event) => edit.set({ description: event.target.value })}
          />
        )}
      </Field>
      <Field label="Notes">
        {(ids) => (
          <textarea
            {...ids}
            rows={5}
            className={FIELD}
            value={texts.notes}
            onChange={(event) => edit.set({ notes: event.target.value })}
          />
        )}
      </Field>
    </FormDialog>
  );
}
