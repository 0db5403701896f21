/** Registers a checkpoint as the next version of a model. */

import { useState } from "react";
import { useLive } from "../services/live";
import { modelsQuery, registerVersion } from "../services/models";
import { FIELD } from "../ui/Button";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";

export default function RegisterDialog(props: {
  checkpointUuid: string;
  title: string;
  onClose: () => void;
  onDone: (model: string, version: number) => void;
}) {
  const models = useLive(modelsQuery({})).data?.rows ?? [];
  const [chosen, setChosen] = useState("");
  const [name, setName] = useState("");
  const [notes, setNotes] = useState("");
  const model = models.find((each) => String(each.id) === chosen) ?? models[0];
  const submit = async () => {
    if (!model) throw new Error("There is no model yet: create one under Models first.");
    const version = await registerVersion(model.id, { checkpointUuid: props.checkpointUuid, name, notes });
    props.onClose();
    props.onDone(model.name, version);
  };
  return (
    <FormDialog title={props.title} yes="Register" onClose={props.onClose} onSubmit={submit}>
      <Field label="Model">
        {(ids) => (
          <select
            {...ids}
            className={FIELD}
            value={model ? String(model.id) : ""}
            onChange={(event) => setChosen(event.target.value)}
          >
            {models.map((each) => (
              <option key={each.id} value={String(each.id)}>
                {each.name}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field label="Name of the version">
        {(ids) => <input {...ids} className={FIELD} value={name} onChange={(event) => setName(event.target.value)} />}
      </Field>
      <Field label="Notes">
        {(ids) => (
          <textarea
            {...ids}
            rows={4}
            className={FIELD}
            value={notes}
            onChange={(event) => setNotes(event.target.value)}
          />
        )}
      </Field>
    </FormDialog>
  );
}
