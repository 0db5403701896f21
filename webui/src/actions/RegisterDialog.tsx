/** Registers a checkpoint as the next version of a model. */

import { useRef, useState } from "react";
import { useLive } from "../services/live";
import { type Model, modelsQuery, registerVersion } from "../services/models";
import { Once } from "../services/once";
import { FIELD } from "../ui/Button";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";
import { visible } from "../visible";

export default function RegisterDialog(props: {
  /** Absent: it is asked for. */
  checkpointUuid?: string;
  /** Absent: it is chosen. */
  model?: Model;
  title: string;
  onClose: () => void;
  onDone: (model: string, version: number) => void;
}) {
  const models = useLive({ ...modelsQuery({}), enabled: !props.model }).data?.rows ?? [];
  const [chosen, setChosen] = useState("");
  const [uuid, setUuid] = useState(props.checkpointUuid ?? "");
  const [name, setName] = useState("");
  const [notes, setNotes] = useState("");
  const model = props.model ?? models.find((each) => String(each.id) === chosen) ?? models[0];
  const once = useRef(new Once());
  const submit = async () => {
    if (!model) throw new Error("There are no models yet. Create one under Models first.");
    const version = await registerVersion(model.id, { checkpointUuid: uuid.trim(), name, notes }, once.current);
    props.onClose();
    props.onDone(model.name, version);
  };
  return (
    <FormDialog title={props.title} yes="Register" onClose={props.onClose} onSubmit={submit}>
      {props.checkpointUuid === undefined && (
        <Field
          label="Checkpoint"
          hint="Its full ID, as shown under a trial's Checkpoints. You can also register it there."
        >
          {(ids) => (
            <input {...ids} required className={FIELD} value={uuid} onChange={(event) => setUuid(event.target.value)} />
          )}
        </Field>
      )}
      {!props.model && (
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
                  {visible(each.name)}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
      <Field label="Version name">
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
