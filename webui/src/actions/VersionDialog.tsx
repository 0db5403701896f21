/** Edits what is written about a version of a model; only what was changed is sent. */

import { useQueryClient } from "@tanstack/react-query";
import { expectedOf } from "../editing/merge";
import { useEdit } from "../editing/useEdit";
import { labelsOf, metadataOf } from "../routes/model/compared";
import { editVersion, type ModelVersion, type VersionEdit, versionQuery } from "../services/models";
import { FIELD } from "../ui/Button";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";

const LABELS = { name: "Name", comment: "Comment", notes: "Notes", labels: "Labels", metadata: "Metadata" };

function textsOf(version: ModelVersion) {
  const metadata = version.metadata ?? {};
  return {
    name: version.name ?? "",
    comment: version.comment ?? "",
    notes: version.notes ?? "",
    labels: (version.labels ?? []).join("\n"),
    metadata: Object.keys(metadata).length > 0 ? JSON.stringify(metadata, null, 2) : "",
  };
}

export default function VersionDialog(props: { version: ModelVersion; onClose: () => void; onDone: () => void }) {
  const { version } = props;
  const client = useQueryClient();
  const edit = useEdit({
    of: version,
    valuesOf: textsOf,
    read: () => client.fetchQuery({ ...versionQuery(String(version.model.id), version.version), staleTime: 0 }),
    labels: LABELS,
  });
  const texts = edit.values;
  const set = (name: keyof typeof texts) => (event: { target: { value: string } }) =>
    edit.set({ [name]: event.target.value });
  const submit = async () => {
    await edit.save(async ({ of, values, changed }) => {
      const differs = (name: keyof typeof values) => changed.includes(name);
      const sent: VersionEdit = {
        ...(differs("name") && { name: values.name }),
        ...(differs("comment") && { comment: values.comment }),
        ...(differs("notes") && { notes: values.notes }),
        ...(differs("labels") && { labels: labelsOf(values.labels) }),
        ...(differs("metadata") && { metadata: metadataOf(values.metadata) }),
        expected: expectedOf(of, changed),
      };
      await editVersion(version.model.id, version.version, sent);
    });
    props.onClose();
    props.onDone();
  };
  return (
    <FormDialog title={`Edit version ${version.version}`} yes="Save" onClose={props.onClose} onSubmit={submit}>
      {edit.overtaken}
      <Field label="Name">
        {(ids) => <input {...ids} className={FIELD} value={texts.name} onChange={set("name")} />}
      </Field>
      <Field label="Comment">
        {(ids) => <input {...ids} className={FIELD} value={texts.comment} onChange={set("comment")} />}
      </Field>
      <Field label="Labels" hint="One per line.">
        {(ids) => <textarea {...ids} rows={2} className={FIELD} value={texts.labels} onChange={set("labels")} />}
      </Field>
      <Field label="Notes" hint="Markdown.">
        {(ids) => <textarea {...ids} rows={6} className={FIELD} value={texts.notes} onChange={set("notes")} />}
      </Field>
      <Field label="Metadata" hint='A JSON object: {"key": "value"}.'>
        {(ids) => (
          <textarea
            {...ids}
            rows={4}
            spellCheck={false}
            className={`${FIELD} py-1 font-mono text-sm`}
            value={texts.metadata}
            onChange={set("metadata")}
          />
        )}
      </Field>
    </FormDialog>
  );
}
