/** All keys there are: the table of them, as it is. */

import { useRef } from "react";
import { type Group, KEYS, type Key } from "../keys/table";
import { Button } from "../ui/Button";
import { Caps } from "../ui/Caps";
import { Dialog, DialogBody } from "../ui/Dialog";

export default function Help({ onClose }: { onClose: () => void }) {
  const done = useRef<HTMLButtonElement>(null);
  return (
    <Dialog title="Keys" onClose={onClose} first={done} className="!w-[min(860px,calc(100vw-24px))]">
      <DialogBody
        buttons={
          <Button ref={done} onClick={onClose}>
            Close
          </Button>
        }
      >
        <AllKeys />
        <p className="text-dim">Keys do nothing while you type in a field.</p>
      </DialogBody>
    </Dialog>
  );
}

export function AllKeys() {
  const keys: Key[] = Object.values(KEYS);
  const groups = [...new Set<Group>(keys.map((key) => key.group))];
  return (
    <section
      aria-label="All keys"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard.
      tabIndex={0}
      className="grid gap-x-8 gap-y-4 md:grid-cols-2"
    >
      {groups.map((group) => (
        <div key={group} className="min-w-0">
          <h3 className="pb-1 font-semibold">{group}</h3>
          <dl className="grid grid-cols-[minmax(0,1fr)_auto]">
            {keys
              .filter((key) => key.group === group)
              .map((key) => (
                <KeyLine key={key.title} of={key} />
              ))}
          </dl>
        </div>
      ))}
    </section>
  );
}

function KeyLine({ of }: { of: Key }) {
  return (
    <>
      <dt className="min-w-0 border-line border-t py-1">{of.title}</dt>
      <dd className="flex items-center justify-end gap-2 border-line border-t py-1 pl-4">
        {of.keys.map((keys) => (
          <span key={keys}>
            <span className="sr-only">{keys}</span>
            <Caps keys={keys} />
          </span>
        ))}
      </dd>
    </>
  );
}
