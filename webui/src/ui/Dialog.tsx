/**
 * A dialog over the page: the browser's own, which keeps the focus inside and the rest out of reach.
 *
 * Esc and a click beside it close it; one that is `steady`, or a form in which something was typed, only Esc and its
 * buttons. A click that began inside is none beside it: text is selected so.
 */

import { type ReactNode, type RefObject, useId, useLayoutEffect, useRef } from "react";
import { visible } from "../visible";
import { isTyped, markTyped } from "./typed";

export function Dialog(props: {
  title: string;
  onClose: () => void;
  /** What has the focus at first; else what is first. */
  first?: RefObject<HTMLElement | null>;
  /** Its title is for those who do not see it. */
  bare?: boolean;
  steady?: boolean;
  className?: string;
  children: ReactNode;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const first = useRef(props.first);
  const pressed = useRef<EventTarget>(null);
  const title = useId();
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    first.current?.current?.focus();
    return () => shown?.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Esc is the key for it, and the browser's.
    <dialog
      ref={dialog}
      aria-labelledby={title}
      onCancel={(event) => {
        event.preventDefault();
        props.onClose();
      }}
      onInput={markTyped}
      onPointerDown={(event) => {
        pressed.current = event.target;
      }}
      onClick={(event) => {
        const shown = event.currentTarget;
        const beside = event.target === shown && pressed.current === shown;
        if (beside && !props.steady && !isTyped(shown)) props.onClose();
      }}
      className={`m-auto mt-[12vh] w-[min(560px,calc(100vw-24px))] rounded-md border border-line bg-surface p-0 text-text backdrop:bg-black/50 ${props.className ?? ""}`}
    >
      <div className="flex max-h-[76vh] flex-col">
        <h2 id={title} className={props.bare ? "sr-only" : "break-words px-4 pt-4 font-semibold text-lg"}>
          {visible(props.title)}
        </h2>
        {props.children}
      </div>
    </dialog>
  );
}

/** What a dialog says, and the buttons under it, above which stands what went wrong: in view, however long it is. */
export function DialogBody(props: { children: ReactNode; problem?: ReactNode; buttons: ReactNode }) {
  const { children, problem, buttons } = props;
  return (
    <>
      <div className="flex min-h-0 flex-1 flex-col gap-3 overflow-y-auto px-4 py-3">{children}</div>
      {problem && <div className="max-h-40 shrink-0 overflow-y-auto border-line border-t px-4 pt-3">{problem}</div>}
      <div className={`flex flex-wrap justify-end gap-2 px-4 py-3 ${problem ? "" : "border-line border-t"}`}>
        {buttons}
      </div>
    </>
  );
}
