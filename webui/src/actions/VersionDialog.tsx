/** Edits what is written about a version of a model; only what was changed is sent. */

import { useState } from "react";
import { labelsOf, metadataOf } from "../routes/model/compared";
import { editVersion, type ModelVersion, type VersionEdit } from "../services/models";
import { FIELD } from "../ui/Button";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";

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
  const [former] = useState(() => textsOf(version));
  const [texts, setTexts] = useState(former);
  const set = (name: keyof typeof former) => (event: { target: { value: string } }) =>
    setTexts({ ...texts, [name]: event.target.value });
  const submit = async () => {
    const differs = (name: keyof typeof former) => texts[name] !== former[name];
    const edit: VersionEdit = {
      ...(differs("name") && { name: texts.name }),
      ...(differs("comment") && { comment: texts.comment }),
      ...(differs("notes") && { notes: texts.notes }),
      ...(differs("labels") && { labels: labelsOf(texts.labels) }),
      ...(differs("metadata") && { metadata: metadataOf(texts.metadata) }),
    };
    if (Object.keys(edit).length > 0) await editVersion(version.model.id, version.version, edit);
    props.onClose();
    props.onDone();
  };
  return (
    <FormDialog title={`Edit version ${version.version}`} yes="Save" onClose={props.onClose} onSubmit={submit}>
      <Field label="Name">
        {(ids) => <input {...ids} className={FIELD} value={texts.name} onChange={set("name")} />}
      </Field>
      <Field label="Comment">
        {(ids) => <input {...ids} className={FIELD} value={texts.comment} onChange={set("comment")} />}
      </Field>
      <Field label="Labels" hint="One a line.">
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
