/** A dialog with fields: it stays until what was typed is accepted, and says why it was not. */

import type { ReactNode } from "react";
import { Button } from "./Button";
import type { Blame } from "./blame";
import { Dialog, DialogBody } from "./Dialog";
import { type At, Form } from "./Form";

export function FormDialog(props: {
  title: string;
  yes: string;
  /** What it does is for good. */
  danger?: boolean;
  onClose: () => void;
  blame?: Blame;
  /** Raises whatever it was refused with. */
  onSubmit: () => Promise<void>;
  /** Other things to do, beside the buttons. */
  also?: ReactNode;
  children: ReactNode | ((at: At) => ReactNode);
}) {
  const { children } = props;
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <Form blame={props.blame} onSubmit={props.onSubmit} className="flex min-h-0 flex-1 flex-col">
        {(at, busy, problem) => (
          <DialogBody
            problem={problem}
            buttons={
              <>
                {props.also}
                <Button onClick={props.onClose}>Cancel</Button>
                <Button type="submit" look={props.danger ? "danger" : "primary"} disabled={busy}>
                  {props.yes}
                </Button>
              </>
            }
          >
            {typeof children === "function" ? children(at) : children}
          </DialogBody>
        )}
      </Form>
    </Dialog>
  );
}
