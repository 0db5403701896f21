/** A question before what cannot be taken back: it names what, and how many. */

import { useRef } from "react";
import { count } from "../format";
import { Button } from "../ui/Button";
import { Dialog, DialogBody } from "../ui/Dialog";
import { visible } from "../visible";

const MAX_NAMED = 6;

export default function ConfirmDialog(props: {
  title: string;
  names: string[];
  size: number;
  warning: string;
  yes: string;
  onYes: () => void;
  onNo: () => void;
}) {
  const no = useRef<HTMLButtonElement>(null);
  const rest = props.size - Math.min(props.names.length, MAX_NAMED);
  return (
    <Dialog title={props.title} onClose={props.onNo} first={no}>
      <DialogBody
        buttons={
          <>
            <Button ref={no} onClick={props.onNo}>
              No, leave it
            </Button>
            <Button look="danger" onClick={props.onYes}>
              {props.yes}
            </Button>
          </>
        }
      >
        <ul className="flex flex-col">
          {props.names.slice(0, MAX_NAMED).map((name) => (
            <li key={name} className="truncate" title={visible(name)}>
              {visible(name)}
            </li>
          ))}
          {props.names.length > 0 && rest > 0 && <li className="text-dim">and {count(rest)} more</li>}
        </ul>
        <p>{props.warning}</p>
      </DialogBody>
    </Dialog>
  );
}
