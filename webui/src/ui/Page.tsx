import { type ReactNode, useEffect } from "react";
import { visible } from "../visible";

/** A page: its title, what can be done, and its content. */
export function Page(props: {
  title: ReactNode;
  /** For the window. */
  name: string;
  aside?: ReactNode;
  /** The content scrolls by itself. */
  full?: boolean;
  /** Its title and what can be done stay in view, however far down one is. */
  stays?: boolean;
  children: ReactNode;
}) {
  useEffect(() => {
    document.title = `${visible(props.name)} · Tenax`;
  }, [props.name]);
  return (
    <div className={props.full ? "flex h-full min-h-0 flex-col" : "flex min-h-full flex-col"}>
      <header
        className={`flex flex-wrap items-center gap-x-4 gap-y-2 px-4 py-3 ${props.stays ? "sticky top-0 z-10 border-line border-b bg-surface" : ""}`}
      >
        <h1 className="min-w-0 break-words font-semibold text-lg">
          {typeof props.title === "string" ? visible(props.title) : props.title}
        </h1>
        {props.aside}
      </header>
      <div className={`flex min-h-0 min-w-0 flex-1 flex-col gap-4 px-4 pb-4`}>{props.children}</div>
    </div>
  );
}

/** A part of a page, with its heading. */
export function Section({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  return (
    <section className="flex min-w-0 flex-col gap-2">
      <div className="flex flex-wrap items-center gap-3">
        <h2 className="font-semibold">{visible(title)}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}
