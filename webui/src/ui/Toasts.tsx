/** What was just done, said for a moment; what was refused stays until somebody has read it. */

import { useEffect, useRef, useState } from "react";
import { count } from "../format";
import { keysOf } from "../keys/table";
import { visible } from "../visible";
import { Button } from "./Button";
import { Caps } from "./Caps";
import { focusAgain, type Toast, unsay, useOverlays } from "./overlays";

const STAYS_MS = 8000;
/** Refusals that are listed: nobody reads more. */
const MAX_LISTED = 50;

export function Toasts() {
  const { toasts } = useOverlays();
  return (
    <section
      aria-label="What was done"
      className="pointer-events-none fixed inset-x-3 bottom-3 z-20 flex flex-col items-center gap-2"
    >
      <div role="status" className="flex max-w-full flex-col items-center gap-2">
        {toasts.map((toast) => !toast.failures && <Said key={toast.id} toast={toast} />)}
      </div>
      <div role="alert" className="flex w-full flex-col items-center gap-2">
        {toasts.map((toast) => toast.failures && <Said key={toast.id} toast={toast} />)}
      </div>
    </section>
  );
}

function Said({ toast }: { toast: Toast }) {
  const [held, setHeld] = useState(false);
  const place = useRef<HTMLDivElement>(null);
  const before = useRef<HTMLElement | null>(null);
  const stays = held || toast.failures !== undefined;
  useEffect(() => {
    if (stays) return;
    const timer = setTimeout(() => unsay(toast.id), STAYS_MS);
    return () => clearTimeout(timer);
  }, [stays, toast.id]);
  const leave = () => {
    const inside = place.current?.contains(document.activeElement);
    unsay(toast.id);
    if (inside) focusAgain(before.current);
  };
  return (
    <div
      ref={place}
      role="group"
      aria-label={toast.text}
      onPointerEnter={() => setHeld(true)}
      onPointerLeave={() => setHeld(false)}
      onFocus={(event) => {
        setHeld(true);
        const from = event.relatedTarget;
        if (from instanceof HTMLElement && !place.current?.contains(from)) before.current = from;
      }}
      onBlur={() => setHeld(false)}
      className={`pointer-events-auto flex max-w-full flex-wrap items-center gap-x-3 gap-y-1 rounded-md border bg-raised px-3 py-2 ${toast.failures ? "w-[min(680px,100%)] border-bad" : "border-line"}`}
    >
      <span className="min-w-0 flex-1 break-words">
        {toast.failures && (
          <span aria-hidden="true" className="text-bad">
            ✕{" "}
          </span>
        )}
        {visible(toast.text)}
      </span>
      {toast.undo && (
        <Button
          onClick={() => {
            leave();
            toast.undo?.();
          }}
          aria-keyshortcuts={keysOf("undo")}
        >
          Undo <Caps keys={keysOf("undo")} />
        </Button>
      )}
      <Button onClick={leave} aria-label="Dismiss">
        ✕
      </Button>
      {toast.failures && toast.failures.length > 0 && (
        <ul
          // biome-ignore lint/a11y/noNoninteractiveTabindex: a list that scrolls is reached by the keyboard.
          tabIndex={0}
          aria-label="What was refused"
          className="max-h-40 w-full overflow-y-auto text-sm"
        >
          {toast.failures.slice(0, MAX_LISTED).map((failure) => (
            <li key={failure.id} className="flex gap-2 py-0.5">
              <span className="shrink-0 text-right font-medium">{failure.id}</span>
              <span className="min-w-0 break-words text-dim">{failure.reason}</span>
            </li>
          ))}
          {toast.failures.length > MAX_LISTED && (
            <li className="text-dim">and {count(toast.failures.length - MAX_LISTED)} more</li>
          )}
        </ul>
      )}
    </div>
  );
}
