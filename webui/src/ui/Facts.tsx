import type { ReactNode } from "react";
import { visible } from "../visible";

/** Named values, side by side. */
export function Facts({ facts }: { facts: [string, ReactNode][] }) {
  return (
    <dl className="grid grid-cols-[repeat(auto-fill,minmax(128px,1fr))] overflow-hidden rounded-md border border-line bg-surface">
      {facts.map(([name, value]) => (
        // Its lines lie outside of it, so that a row that is not full shows nothing in its rest.
        <div key={name} className="min-w-0 px-3 py-2 shadow-[1px_0_0_var(--line),0_1px_0_var(--line)]">
          <dt className="truncate text-dim text-sm" title={visible(name)}>
            {visible(name)}
          </dt>
          <dd className="truncate">{typeof value === "string" ? visible(value) : value}</dd>
        </div>
      ))}
    </dl>
  );
}
