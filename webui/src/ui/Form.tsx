/** A form that stays until what was typed is accepted, and says why it was not: at the field that a refusal is about. */

import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { type Blame, blamed } from "./blame";
import { Refusal } from "./notices";
import { markTyped, unmarkTyped } from "./typed";

/** What a field was refused with. */
export type At = (field: string) => string | undefined;

export function Form(props: {
  label?: string;
  className?: string;
  /** Which refusal is about which field; others are said below. */
  blame?: Blame;
  /** Raises whatever it was refused with. */
  onSubmit: () => Promise<void>;
  children: (at: At, busy: boolean, problem: ReactNode) => ReactNode;
}) {
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState("");
  const form = useRef<HTMLFormElement>(null);
  const field = refusal ? blamed(refusal, props.blame ?? {}) : undefined;
  useEffect(() => {
    if (field) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [field]);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setRefusal("");
    try {
      await props.onSubmit();
      unmarkTyped(form.current);
    } catch (error) {
      setRefusal(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  };
  const problem = refusal && !field && <Refusal>{refusal}</Refusal>;
  return (
    <form
      ref={form}
      aria-label={props.label}
      onInput={markTyped}
      onSubmit={(event) => void submit(event)}
      className={props.className}
    >
      {props.children((name) => (name === field ? refusal : undefined), busy, problem)}
    </form>
  );
}
