/** What can be done to one thing that is shown: as buttons, as a menu behind its row, by key and in the palette. */

import type { Command } from "../keys/commands";
import { keysOf } from "../keys/table";
import { Button } from "../ui/Button";
import { Menu, MenuItem } from "../ui/Menu";
import { say } from "../ui/overlays";
import { outcome } from "./perform";

export interface Offered extends Command {
  /** On a button, where it is clear of what. */
  short: string;
  danger?: boolean;
}

export function Buttons({ of }: { of: Offered[] }) {
  return of.map((each) => (
    <Button
      key={each.short}
      look={each.danger ? "danger" : "plain"}
      onClick={each.run}
      aria-keyshortcuts={each.name && keysOf(each.name)}
    >
      {each.short}
    </Button>
  ));
}

export function More({ of, label }: { of: Offered[]; label: string }) {
  if (of.length === 0) return <span className="text-dim">–</span>;
  return (
    <Menu label={label} trigger={<span aria-hidden="true">⋯</span>}>
      {of.map((each) => (
        <MenuItem key={each.short} onSelect={each.run} danger={each.danger}>
          {each.short}
        </MenuItem>
      ))}
    </Menu>
  );
}

/** Does something that can be taken back, and says so; `again`: what shows it is asked for anew. */
export async function doAndSay(
  what: { asked: () => Promise<unknown>; doing: string; done: string; undo?: () => void },
  again: () => void,
): Promise<void> {
  const done = await outcome(
    what.asked().then(() => true),
    what.doing,
  );
  if (done) say({ text: what.done, undo: what.undo });
  again();
}
