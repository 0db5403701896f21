/** Asks for one text. */

import { useEdit } from "../editing/useEdit";
import { FIELD } from "../ui/Button";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";

function valuesOf(text: string) {
  return { text };
}

export default function TextDialog(props: {
  title: string;
  label: string;
  hint?: string;
  yes: string;
  value: string;
  type?: "text" | "password" | "url";
  required?: boolean;
  onClose: () => void;
  /** The text as it is by now, where somebody else may have changed it: `onSubmit` expects what it is told. */
  read?: () => Promise<string>;
  /** `former`: as it was. Raises whatever it was refused with. */
  onSubmit: (text: string, former: string) => Promise<void>;
}) {
  const { value, label, read } = props;
  const edit = useEdit({ of: value, valuesOf, read: read ?? (async () => value), labels: { text: label } });
  const { text } = edit.values;
  const submit = () =>
    read ? edit.save(({ of, values }) => props.onSubmit(values.text, of)) : props.onSubmit(text, value);
  return (
    <FormDialog
      title={props.title}
      yes={props.yes}
      blame={{ text: /./ }}
      onClose={props.onClose}
      onSubmit={async () => {
        await submit();
        props.onClose();
      }}
    >
      {(at) => (
        <>
          {edit.overtaken}
          <Field label={label} hint={props.hint} problem={at("text")}>
            {(ids) => (
              <input
                {...ids}
                type={props.type ?? "text"}
                autoComplete={props.type === "password" ? "new-password" : "off"}
                required={props.required}
                className={FIELD}
                value={text}
                onChange={(event) => edit.set({ text: event.target.value })}
              />
            )}
          </Field>
        </>
      )}
    </FormDialog>
  );
}
