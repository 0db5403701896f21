/** Edits what may change of an experiment later; only what was changed is sent. */

import { useQueryClient } from "@tanstack/react-query";
import { expectedOf } from "../editing/merge";
import { useEdit } from "../editing/useEdit";
import { type Edit, editExperiment } from "../services/actions";
import { type Experiment, experimentQuery } from "../services/experiments";
import { FIELD } from "../ui/Button";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";
import { say } from "../ui/overlays";
import { refresh } from "./perform";
import { lives } from "./states";

interface Texts {
  name: string;
  description: string;
  labels: string;
  notes: string;
  priority: string;
  weight: string;
  maxSlots: string;
}

const LABELS: Record<keyof Texts, string> = {
  name: "Name",
  description: "Description",
  labels: "Labels",
  notes: "Notes",
  priority: "Priority",
  weight: "Weight",
  maxSlots: "Maximum slots",
};
/** Where they stand in the configuration. */
const RESOURCES: Partial<Record<keyof Texts, string>> = {
  priority: "priority",
  weight: "weight",
  maxSlots: "max_slots",
};

function textsOf(experiment: Experiment): Texts {
  const resources = (experiment.config?.resources ?? {}) as Record<string, unknown>;
  const written = (value: unknown) => (typeof value === "number" ? String(value) : "");
  return {
    name: experiment.name,
    description: experiment.description ?? "",
    labels: (experiment.labels ?? []).join("\n"),
    notes: experiment.notes ?? "",
    priority: written(resources.priority),
    weight: written(resources.weight),
    maxSlots: written(resources.max_slots),
  };
}

/** What of an experiment was changed, as the master takes it. */
export function editOf(former: Texts, texts: Texts): Edit {
  const edit: Edit = {};
  if (texts.name !== former.name) edit.name = texts.name;
  if (texts.description !== former.description) edit.description = texts.description;
  if (texts.notes !== former.notes) edit.notes = texts.notes;
  if (texts.labels !== former.labels) {
    const labels = texts.labels.split("\n").map((label) => label.trim());
    edit.labels = [...new Set(labels.filter((label) => label !== ""))];
  }
  const resources: NonNullable<Edit["resources"]> = { unlimited: false, withoutTimeLimit: false };
  if (texts.priority !== former.priority && texts.priority) resources.priority = Number(texts.priority);
  if (texts.weight !== former.weight && texts.weight) resources.weight = Number(texts.weight);
  // Null is no limit, which absence does not say.
  if (texts.maxSlots !== former.maxSlots) resources.maxSlots = texts.maxSlots ? Number(texts.maxSlots) : null;
  if (Object.keys(resources).length > 2) edit.resources = resources;
  return edit;
}

/** As the master has shown what was changed. */
function shownOf(experiment: Experiment, changed: (keyof Texts)[]): Record<string, unknown> {
  const resources = (experiment.config?.resources ?? {}) as Record<string, unknown>;
  const shown: Record<string, unknown> = {};
  for (const name of changed) {
    const key = RESOURCES[name];
    if (key) shown[`config.resources.${key}`] = resources[key] ?? null;
    else Object.assign(shown, expectedOf(experiment, [name as "name" | "description" | "labels" | "notes"]));
  }
  return shown;
}

export default function EditDialog({ experiment, onClose }: { experiment: Experiment; onClose: () => void }) {
  const client = useQueryClient();
  const edit = useEdit({
    of: experiment,
    valuesOf: textsOf,
    read: async () => (await client.fetchQuery({ ...experimentQuery(experiment.id), staleTime: 0 })).experiment,
    labels: LABELS,
  });
  const texts = edit.values;
  const set = (name: keyof Texts) => (event: { target: { value: string } }) => edit.set({ [name]: event.target.value });
  const submit = async () => {
    await edit.save(async ({ of, former, values, changed }) => {
      await editExperiment(experiment.id, { ...editOf(former, values), expected: shownOf(of, changed) });
      say({ text: `Saved experiment ${experiment.id}` });
      void refresh(client);
    });
    onClose();
  };
  return (
    <FormDialog title={`Edit experiment ${experiment.id}`} yes="Save" onClose={onClose} onSubmit={submit}>
      {edit.overtaken}
      <Field label="Name">
        {(ids) => <input {...ids} required className={FIELD} value={texts.name} onChange={set("name")} />}
      </Field>
      <Field label="Description">
        {(ids) => <input {...ids} className={FIELD} value={texts.description} onChange={set("description")} />}
      </Field>
      <Field label="Labels" hint="One per line.">
        {(ids) => <textarea {...ids} rows={2} className={FIELD} value={texts.labels} onChange={set("labels")} />}
      </Field>
      <Field label="Notes">
        {(ids) => <textarea {...ids} rows={4} className={FIELD} value={texts.notes} onChange={set("notes")} />}
      </Field>
      {lives(experiment.state) && !experiment.unmanaged && (
        <div className="grid gap-3 sm:grid-cols-3">
          <Field label="Priority" hint="1 is the most urgent, 99 the least.">
            {(ids) => (
              <input
                {...ids}
                type="number"
                min={1}
                max={99}
                className={FIELD}
                value={texts.priority}
                onChange={set("priority")}
              />
            )}
          </Field>
          <Field label="Weight" hint="For pools that share by weight.">
            {(ids) => (
              <input
                {...ids}
                type="number"
                min={0}
                step="any"
                className={FIELD}
                value={texts.weight}
                onChange={set("weight")}
              />
            )}
          </Field>
          <Field label="Maximum slots" hint="Leave empty for no limit.">
            {(ids) => (
              <input
                {...ids}
                type="number"
                min={0}
                className={FIELD}
                value={texts.maxSlots}
                onChange={set("maxSlots")}
              />
            )}
          </Field>
        </div>
      )}
    </FormDialog>
  );
}
