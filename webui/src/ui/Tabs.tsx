/** Parts of a page, each with an address: `?tab=…`, and without it the first. */

import { Link } from "@tanstack/react-router";

export function Tabs(props: { label: string; tab: string | undefined; first: string; rest: Record<string, string> }) {
  const look = "inline-flex min-h-8 items-center whitespace-nowrap border-b-2 px-2";
  return (
    <nav aria-label={props.label} className="-mb-2 flex shrink-0 flex-wrap gap-x-2 border-line border-b">
      {[undefined, ...Object.keys(props.rest)].map((part) => (
        <Link
          key={part ?? ""}
          to="."
          search={{ tab: part } as never}
          aria-current={props.tab === part ? "page" : undefined}
          className={`${look} ${props.tab === part ? "border-accent font-medium" : "border-transparent text-dim"}`}
        >
          {part ? props.rest[part] : props.first}
        </Link>
      ))}
    </nav>
  );
}
