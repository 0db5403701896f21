/** Between which values a chart is drawn; it comes once somebody asks for it. */

import { useState } from "react";
import type { Range } from "../services/layouts";
import { FIELD } from "../ui/Button";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";
import { closeDialog } from "../ui/overlays";

interface RangeDialogProps {
  title: string;
  range?: Range;
  onClose: () => void;
  onRange: (range: Range | undefined) => void;
}

export default function RangeDialog(props: RangeDialogProps) {
  const [low, setLow] = useState(String(props.range?.low ?? ""));
  const [high, setHigh] = useState(String(props.range?.high ?? ""));
  const submit = async () => {
    const range: Range = {};
    for (const [end, typed] of [
      ["low", low],
      ["high", high],
    ] as const) {
      if (typed.trim() === "") continue;
      const value = Number(typed);
      if (!Number.isFinite(value)) throw new Error(`${typed} is not a number: write one such as 0.5 or 1e-3.`);
      range[end] = value;
    }
    if (range.low !== undefined && range.high !== undefined && range.low >= range.high) {
      throw new Error("The lower end must be below the upper one.");
    }
    closeDialog();
    props.onRange(Object.keys(range).length > 0 ? range : undefined);
  };
  return (
    <FormDialog title={props.title} yes="Apply" onClose={props.onClose} onSubmit={submit}>
      {(
        [
          ["From", low, setLow],
          ["To", high, setHigh],
        ] as const
      ).map(([label, value, set]) => (
        <Field key={label} label={label} hint="Leave empty to fit the data.">
          {(ids) => (
            <input
              {...ids}
              inputMode="decimal"
              className={FIELD}
              value={value}
              onChange={(event) => set(event.target.value)}
            />
          )}
        </Field>
      ))}
    </FormDialog>
  );
}
