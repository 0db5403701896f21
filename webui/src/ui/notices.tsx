/** What stands where there is nothing to show, or where something went wrong: never a blank page. */

import { type ReactNode, useEffect, useRef } from "react";
import { Refused } from "../services/client";
import { Button } from "./Button";
import { Copy } from "./Copy";

/** Nothing here yet, and the command that changes it. */
export function Empty({ title, children, command }: { title: string; children?: ReactNode; command?: string }) {
  return (
    <div className="flex flex-col items-start gap-2 rounded-md border border-line border-dashed p-4">
      <p className="font-semibold">{title}</p>
      {children && <div className="text-dim">{children}</div>}
      {command && (
        <div className="flex max-w-full items-center gap-2">
          <code className="overflow-x-auto rounded-md bg-sunken px-2 py-1 font-mono text-sm">{command}</code>
          <Copy text={command} />
        </div>
      )}
    </div>
  );
}

/** What went wrong, in the master's words, and what to do. */
export function Problem({ error, retry }: { error: unknown; retry?: () => void }) {
  const message = error instanceof Error ? error.message : String(error);
  const title = error instanceof Refused && error.status === 404 ? "Not found" : "This could not be shown";
  return (
    <div role="alert" className="flex flex-col items-start gap-2 rounded-md border border-bad p-4">
      <p className="font-semibold text-bad">
        <span aria-hidden="true">✕ </span>
        {title}
      </p>
      <p className="break-words">{message}</p>
      {retry && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}

/** Why what was typed was not taken; it comes into view, wherever one is. */
export function Refusal(props: { id?: string; className?: string; children: string }) {
  const said = useRef<HTMLParagraphElement>(null);
  const { children } = props;
  // Another one is to be seen, too.
  useEffect(() => {
    void said.current?.scrollIntoView({ block: "nearest" });
  }, [children]);
  return (
    <p ref={said} id={props.id} role="alert" className={`break-words text-bad ${props.className ?? ""}`}>
      {children}
    </p>
  );
}

/** Shown instead of data that were never there, and only once it takes a moment. */
export function Loading({ what }: { what: string }) {
  return (
    <p role="status" className="appears-late p-4 text-dim">
      Loading {what}…
    </p>
  );
}
