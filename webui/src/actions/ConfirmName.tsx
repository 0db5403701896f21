/** A question before much is lost for good: it is answered by typing the name of what goes. */

import { type ReactNode, useState } from "react";
import { FIELD } from "../ui/Button";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";
import { visible } from "../visible";

export default function ConfirmName(props: {
  title: string;
  name: string;
  children: ReactNode;
  onClose: () => void;
  /** Raises whatever it was refused with. */
  onYes: () => Promise<void>;
}) {
  const [typed, setTyped] = useState("");
  const submit = async () => {
    // What hides in it is shown as signs: whoever types these means it, too.
    if (typed !== props.name && typed !== visible(props.name))
      throw new Error("That is not its name. Type it exactly as it is written above.");
    await props.onYes();
    props.onClose();
  };
  return (
    <FormDialog title={props.title} yes="Delete" danger onClose={props.onClose} onSubmit={submit}>
      <div className="break-words">{props.children}</div>
      <p className="break-words rounded-md bg-sunken px-2 py-1 font-medium">{visible(props.name)}</p>
      <Field label="Type this name">
        {(ids) => (
          <input
            {...ids}
            required
            autoComplete="off"
            className={FIELD}
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
        )}
      </Field>
    </FormDialog>
  );
}
