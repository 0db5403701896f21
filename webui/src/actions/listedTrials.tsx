/** What is selected in a table of all trials, and what can be done to it: each by itself, refusals with their reasons. */

import { type QueryClient, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { count } from "../format";
import { useCommands } from "../keys/commands";
import { type KeyName, keysOf } from "../keys/table";
import { actOnTrials, type Result, type TrialVerb } from "../services/actions";
import type { ListedTrial, TrialsListed } from "../services/listedTrials";
import { meQuery } from "../services/session";
import { Button } from "../ui/Button";
import type { Selecting } from "../ui/Grid";
import { closeDialog, openDialog, say } from "../ui/overlays";
import { Confirm } from "./Confirm";
import { useCompare } from "./compare";
import { type Action, ActionButtons } from "./experiments";
import { outcome, refresh, VERBS } from "./perform";
import { allows, mayChange } from "./states";

const KEYS_OF: Record<TrialVerb, KeyName> = {
  archive: "archive",
  unarchive: "archive",
  kill: "kill",
  delete: "delete",
};
const WARNINGS: Partial<Record<TrialVerb, string>> = {
  kill: "They end at once, and what they did since their latest checkpoint is lost. Their searches go on without them.",
  delete: "Their checkpoints, metrics and output are deleted, too, and cannot be recovered.",
};

interface TrialsBarProps {
  picked: ReadonlySet<number>;
  total: number;
  selecting: Selecting<ListedTrial>;
}

export function TrialsBar({ picked, total, selecting }: TrialsBarProps) {
  const client = useQueryClient();
  const me = useSuspenseQuery(meQuery).data;
  const compare = useCompare();
  const ids = [...picked];
  const own = known(client, picked).filter((trial) => mayChange(me, trial.userId));
  const verbs = (["archive", "unarchive", "kill", "delete"] as const).filter((verb) =>
    own.some((trial) => allows({ ...trial, unmanaged: trial.experiment.unmanaged }, verb)),
  );
  const actions = verbs.map(
    (verb, place): Action => ({
      name: verb === "unarchive" && verbs[place - 1] === "archive" ? undefined : KEYS_OF[verb],
      short: VERBS[verb].title,
      title: `${VERBS[verb].title} ${named(ids)}`,
      danger: WARNINGS[verb] !== undefined,
      run: () => ask(client, verb, ids, selecting.none),
    }),
  );
  const comparing = () => compare(Promise.resolve(ids));
  useCommands([
    { name: "compare", title: `Compare ${named(ids)}`, run: comparing },
    ...actions,
    { name: "leave", title: "Clear selection", run: selecting.none },
  ]);
  return (
    <section
      aria-label="Selected"
      className="-mb-2 flex flex-wrap items-center gap-x-3 gap-y-2 rounded-md border border-accent bg-raised px-3 py-1.5"
    >
      <p aria-live="polite">{count(picked.size)} selected</p>
      <Button onClick={comparing} aria-keyshortcuts={keysOf("compare")}>
        Compare
      </Button>
      <ActionButtons actions={actions} label="More actions for the selection" shown={3} />
      <span className="flex-1" />
      {selecting.state !== "all" && total <= MAX_ALL && (
        <Button onClick={selecting.all}>Select all {count(total)} that match</Button>
      )}
      <Button onClick={selecting.none} aria-keyshortcuts={keysOf("leave")}>
        Clear selection
      </Button>
    </section>
  );
}

/** Trials are selected by number: so many at most. */
const MAX_ALL = 1000;

function named(ids: number[]): string {
  return ids.length === 1 ? `trial ${ids[0]}` : `${count(ids.length)} trials`;
}

/** Rows of them, as far as some window has them. */
function known(client: QueryClient, ids: ReadonlySet<number>): ListedTrial[] {
  const rows = new Map<number, ListedTrial>();
  for (const [, found] of client.getQueriesData<TrialsListed>({ queryKey: ["listed-trials"] })) {
    for (const row of found?.rows ?? []) if (ids.has(row.id)) rows.set(row.id, row);
  }
  return [...rows.values()];
}

function ask(client: QueryClient, verb: TrialVerb, ids: number[], done: () => void): void {
  const warning = WARNINGS[verb];
  if (!warning) return void carryOut(client, verb, ids, done);
  const names = known(client, new Set(ids)).map(({ id, experiment }) => `${id} of ${experiment.id} ${experiment.name}`);
  openDialog((close) => (
    <Confirm
      title={`${VERBS[verb].title} ${named(ids)}?`}
      names={names}
      size={ids.length}
      warning={warning}
      yes={VERBS[verb].title}
      onYes={() => {
        closeDialog();
        void carryOut(client, verb, ids, done);
      }}
      onNo={close}
    />
  ));
}

const TAKES_BACK: Partial<Record<TrialVerb, TrialVerb>> = { archive: "unarchive", unarchive: "archive" };

async function carryOut(client: QueryClient, verb: TrialVerb, ids: number[], done?: () => void): Promise<void> {
  const results = await outcome(actOnTrials(verb, ids), `${VERBS[verb].title} ${named(ids)}`);
  if (results) tell(client, verb, results);
  done?.();
  await refresh(client);
  await client.invalidateQueries({ queryKey: ["listed-trials"] });
}

function tell(client: QueryClient, verb: TrialVerb, results: Result[]): void {
  const well = results.filter((each) => !each.error).map((each) => each.id);
  const failures = results.flatMap(({ id, error }) => (error ? [{ id: String(id), reason: error }] : []));
  const back = TAKES_BACK[verb];
  say({
    text: failures.length
      ? `${VERBS[verb].past} ${count(well.length)} of ${named(results.map((each) => each.id))}`
      : `${VERBS[verb].past} ${named(well)}`,
    ...(failures.length > 0 && { failures }),
    undo: back && well.length > 0 ? () => void carryOut(client, back, well) : undefined,
  });
}
