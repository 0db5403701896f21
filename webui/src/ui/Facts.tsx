import type { ReactNode } from "react";

/** Named values, side by side. */
export function Facts({ facts }: { facts: [string, ReactNode][] }) {
  return (
    <dl className="grid grid-cols-[repeat(auto-fill,minmax(150px,1fr))] gap-px overflow-hidden rounded-md border border-line bg-line">
      {facts.map(([name, value]) => (
        <div key={name} className="min-w-0 bg-surface px-3 py-2">
          <dt className="truncate text-dim text-sm" title={name}>
            {name}
          </dt>
          <dd className="truncate">{value}</dd>
        </div>
      ))}
    </dl>
  );
}
