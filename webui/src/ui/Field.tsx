/** A named field of a form. */

import { type ReactNode, useId } from "react";

export function Field({
  label,
  hint,
  children,
}: {
  label: string;
  hint?: string;
  children: (ids: FieldIds) => ReactNode;
}) {
  const id = useId();
  const described = hint ? `${id}-hint` : undefined;
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <label htmlFor={id} className="font-medium">
        {label}
      </label>
      {children({ id, "aria-describedby": described })}
      {hint && (
        <p id={described} className="text-dim text-sm">
          {hint}
        </p>
      )}
    </div>
  );
}

interface FieldIds {
  id: string;
  "aria-describedby"?: string;
}
