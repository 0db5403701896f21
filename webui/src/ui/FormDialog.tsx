/** A dialog with fields: it stays until what was typed is accepted, and says why it was not. */

import { type FormEvent, type ReactNode, useState } from "react";
import { Button } from "./Button";
import { Dialog, DialogBody } from "./Dialog";

export function FormDialog(props: {
  title: string;
  yes: string;
  onClose: () => void;
  /** Raises whatever it was refused with. */
  onSubmit: () => Promise<void>;
  children: ReactNode;
}) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setProblem("");
    try {
      await props.onSubmit();
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <form onSubmit={(event) => void submit(event)} className="flex min-h-0 flex-1 flex-col">
        <DialogBody
          buttons={
            <>
              <Button onClick={props.onClose}>Cancel</Button>
              <Button type="submit" look="primary" disabled={busy}>
                {props.yes}
              </Button>
            </>
          }
        >
          {props.children}
          {problem && (
            <p role="alert" className="break-words text-bad">
              {problem}
            </p>
          )}
        </DialogBody>
      </form>
    </Dialog>
  );
}
