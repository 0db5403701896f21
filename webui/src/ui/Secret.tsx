/** What is told once: it is here until this is closed, and nowhere else. */

import { useRef } from "react";
import { Button } from "./Button";
import { Copy } from "./Copy";
import { Dialog, DialogBody } from "./Dialog";

export function Secret(props: { title: string; secret: string; children: string; onClose: () => void }) {
  const place = useRef<HTMLElement>(null);
  return (
    <Dialog title={props.title} steady onClose={props.onClose} first={place}>
      <DialogBody buttons={<Button onClick={props.onClose}>I have saved it</Button>}>
        <p>{props.children}</p>
        <div className="flex min-w-0 flex-wrap items-center gap-2">
          <code
            ref={place}
            // biome-ignore lint/a11y/noNoninteractiveTabindex: it is reached by the keyboard, to be selected.
            tabIndex={0}
            className="min-w-0 select-all break-all rounded-md bg-sunken px-2 py-1 font-mono text-sm"
          >
            {props.secret}
          </code>
          <Copy text={props.secret} />
        </div>
      </DialogBody>
    </Dialog>
  );
}
