/** Asks for one text. */

import { useState } from "react";
import { FIELD } from "../ui/Button";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";

export default function TextDialog(props: {
  title: string;
  label: string;
  hint?: string;
  yes: string;
  value: string;
  type?: "text" | "password" | "url";
  required?: boolean;
  onClose: () => void;
  /** Raises whatever it was refused with. */
  onSubmit: (text: string) => Promise<void>;
}) {
  const [text, setText] = useState(props.value);
  return (
    <FormDialog
      title={props.title}
      yes={props.yes}
      blame={{ text: /./ }}
      onClose={props.onClose}
      onSubmit={async () => {
        await props.onSubmit(text);
        props.onClose();
      }}
    >
      {(at) => (
        <Field label={props.label} hint={props.hint} problem={at("text")}>
          {(ids) => (
            <input
              {...ids}
              type={props.type ?? "text"}
              autoComplete={props.type === "password" ? "new-password" : "off"}
              required={props.required}
              className={FIELD}
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          )}
        </Field>
      )}
    </FormDialog>
  );
}
