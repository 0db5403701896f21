/** What somebody else has made of what one edits, and the choice: theirs, one's own, or what one makes of both. */

import { useEffect, useRef } from "react";
import { Button } from "../ui/Button";

interface Contested {
  name: string;
  label: string;
  theirs: unknown;
}

export function Overtaken({ of, decide }: { of: Contested[]; decide: (name: string, theirs: boolean) => void }) {
  const shown = useRef<HTMLDivElement>(null);
  useEffect(() => {
    void shown.current?.scrollIntoView({ block: "nearest" });
  }, []);
  return (
    <div ref={shown} role="alert" className="flex min-w-0 flex-col items-start gap-2 rounded-md border border-wait p-3">
      <p className="font-semibold text-wait">! Someone else changed this while you were editing</p>
      <p>
        What you typed is below, and is not saved. Take theirs, keep yours, or combine both in the field and keep that.
        Fields that you had not changed are as they left them.
      </p>
      {of.map(({ name, label, theirs }) => (
        <section key={name} aria-label={`${label}, as they left it`} className="flex w-full min-w-0 flex-col gap-1">
          <p className="font-medium">{label} is now</p>
          <pre
            // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard.
            tabIndex={0}
            className="max-h-40 overflow-auto whitespace-pre-wrap break-words rounded-md bg-sunken p-2 font-mono text-sm"
          >
            {textOf(theirs) || "(nothing)"}
          </pre>
          <p className="flex flex-wrap gap-2">
            <Button onClick={() => decide(name, true)}>Take theirs</Button>
            <Button onClick={() => decide(name, false)}>Keep mine</Button>
          </p>
        </section>
      ))}
    </div>
  );
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return value ? "Yes" : "No";
  if (value === null || typeof value !== "object") return String(value ?? "");
  return Object.entries(value)
    .filter(([, each]) => each !== "")
    .map(([key, each]) => `${key}: ${each}`)
    .join("\n");
}
