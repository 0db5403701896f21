/** A named field of a form, what is wrong with it, and how it is filled in. */

import { type ReactNode, useId } from "react";
import { Refusal } from "./notices";

export function Field({
  label,
  hint,
  problem,
  children,
}: {
  label: string;
  hint?: string;
  /** Why it was refused. */
  problem?: string;
  children: (ids: FieldIds) => ReactNode;
}) {
  const id = useId();
  const described = [problem && `${id}-problem`, hint && `${id}-hint`].filter(Boolean).join(" ") || undefined;
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <label htmlFor={id} className="font-medium">
        {label}
      </label>
      {children({ id, "aria-describedby": described, ...(problem && { "aria-invalid": true as const }) })}
      {problem && <Refusal id={`${id}-problem`}>{problem}</Refusal>}
      {hint && (
        <p id={`${id}-hint`} className="text-dim text-sm">
          {hint}
        </p>
      )}
    </div>
  );
}

interface FieldIds {
  id: string;
  "aria-describedby"?: string;
  "aria-invalid"?: true;
}
