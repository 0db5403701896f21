/** What is selected, and what can be done to all of it. */

import { count } from "../format";
import { useCommands } from "../keys/commands";
import { keysOf } from "../keys/table";
import { Button } from "../ui/Button";
import type { Selecting } from "../ui/Grid";
import { useCompareBest } from "./compare";
import { ActionButtons, useActions } from "./experiments";
import type { Chosen } from "./perform";

export function SelectionBar<R>(props: { chosen: Chosen; size: number; total: number; selecting: Selecting<R> }) {
  const { chosen, size, total, selecting } = props;
  const actions = useActions(chosen, selecting.none);
  const compare = useCompareBest(chosen);
  const comparing = { name: "compare" as const, title: "Compare the best trials of the selection", run: compare };
  useCommands([comparing, ...actions, { name: "leave", title: "Clear selection", run: selecting.none }]);
  return (
    <section
      aria-label="Selected"
      className="-mb-2 flex flex-wrap items-center gap-x-3 gap-y-2 rounded-md border border-accent bg-raised px-3 py-1.5"
    >
      <p aria-live="polite">{count(size)} selected</p>
      <Button onClick={compare} aria-keyshortcuts={keysOf("compare")}>
        Compare
      </Button>
      {actions.length > 0 ? (
        <ActionButtons actions={actions} label="More actions for the selection" shown={4} />
      ) : (
        <p className="text-dim">Only owners and administrators can change experiments, and none of these are yours.</p>
      )}
      <span className="flex-1" />
      {selecting.state !== "all" && <Button onClick={selecting.all}>Select all {count(total)} that match</Button>}
      <Button onClick={selecting.none} aria-keyshortcuts={keysOf("leave")}>
        Clear selection
      </Button>
    </section>
  );
}
