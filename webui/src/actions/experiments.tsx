/** What can be done to the experiments that are shown or selected: as buttons, as a menu, by key and in the palette. */

import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { type Command, useCommands } from "../keys/commands";
import { type KeyName, keysOf } from "../keys/table";
import { lazy } from "../parts";
import { continueExperiment, type Verb } from "../services/actions";
import { type Experiment, experimentQuery } from "../services/experiments";
import { meQuery } from "../services/session";
import { Button } from "../ui/Button";
import { copy } from "../ui/Copy";
import { Menu, MenuItem, MenuReason } from "../ui/Menu";
import { closeDialog, openDialog, say } from "../ui/overlays";
import { Confirm } from "./Confirm";
import { type Chosen, named, outcome, perform, refresh, VERBS } from "./perform";
import { allows, mayChange, whyNotContinued } from "./states";

const EditDialog = lazy(() => import("./EditDialog"));
const MoveDialog = lazy(() => import("./MoveDialog"));

export interface Action extends Command {
  /** On a button, where it is clear of what. */
  short: string;
  danger?: boolean;
}

/** What the states of experiments and the rights of whoever looks allow; the key of a verb is that of its line. */
export function useActions(chosen: Chosen, done?: () => void): Action[] {
  const client = useQueryClient();
  const navigate = useNavigate();
  const me = useSuspenseQuery(meQuery).data;
  const own = chosen.known.filter((each) => mayChange(me, each.userId));
  const offers = (verb: Parameters<typeof allows>[1]) => own.some((each) => allows(each, verb));
  const actions: Action[] = [];
  const add = (short: string, run: () => void, name?: KeyName, danger = false) =>
    actions.push({ name, short, title: `${short} ${named(chosen)}`, run, danger });
  const verb = (which: Verb, name?: KeyName, danger = false) =>
    offers(which) && add(VERBS[which].title, () => perform(client, which, chosen, done), name, danger);

  verb("pause", "hold");
  verb("activate", offers("pause") ? undefined : "hold");
  const any = chosen.known.length === 1 && "ids" in chosen.target ? chosen.known[0] : undefined;
  if (any && !any.unmanaged) {
    add("Fork", () => void navigate({ to: "/experiments/new", search: { fork: any.id } }));
  }
  const only = chosen.known.length === 1 && "ids" in chosen.target ? own[0] : undefined;
  if (only && allows(only, "continue")) add("Continue", () => goOn(client, only), "continue");
  verb("cancel", "cancel");
  if (only) add("Edit", () => void edit(client, only), "edit");
  verb("archive", "archive");
  verb("unarchive", offers("archive") ? undefined : "archive");
  if (offers("move")) {
    add("Move", () => openDialog((close) => <MoveDialog chosen={chosen} onClose={close} onDone={done} />), "move");
  }
  verb("kill", "kill", true);
  verb("delete", "delete", true);
  return actions;
}

/** What a list knows of an experiment is not its configuration; what was read before may be old. */
async function edit(client: ReturnType<typeof useQueryClient>, { id }: Experiment): Promise<void> {
  const read = client.fetchQuery({ ...experimentQuery(id), staleTime: 0 }).then(({ experiment }) => experiment);
  const experiment = await outcome(read, `Edit experiment ${id}`);
  if (experiment) openDialog((close) => <EditDialog experiment={experiment} onClose={close} />);
}

function goOn(client: ReturnType<typeof useQueryClient>, experiment: Experiment): void {
  const yes = async () => {
    closeDialog();
    const notices = await outcome(continueExperiment(experiment.id), `Continue experiment ${experiment.id}`);
    if (notices) say({ text: [`Continued experiment ${experiment.id}`, ...notices].join(". ") });
    await refresh(client);
  };
  openDialog((close) => (
    <Confirm
      title={`Continue experiment ${experiment.id}?`}
      names={[`${experiment.id} ${experiment.name}`]}
      size={1}
      warning="It continues with the same configuration, from the latest checkpoint of each trial."
      yes="Continue"
      onYes={() => void yes()}
      onNo={close}
    />
  ));
}

/** The configuration as it was submitted, or as the master understood it. */
export function configOf(experiment: Experiment): string {
  return experiment.originalConfig || `${JSON.stringify(experiment.config, null, 2)}\n`;
}

function download(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/yaml" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function configActions(experiment: Experiment): Action[] {
  const name = `configuration of experiment ${experiment.id}`;
  const copied = async () =>
    say({ text: (await copy(configOf(experiment))) ? `Copied the ${name}` : `The ${name} could not be copied` });
  return [
    { short: "Copy configuration", title: `Copy the ${name}`, run: () => void copied() },
    {
      short: "Download configuration",
      title: `Download the ${name}`,
      run: () => download(`experiment-${experiment.id}.yaml`, configOf(experiment)),
    },
  ];
}

/** On the page of one experiment. */
export function ExperimentActions({ experiment }: { experiment: Experiment }) {
  const chosen = { target: { ids: [experiment.id] }, known: [experiment] };
  const actions = [...useActions(chosen), ...configActions(experiment)];
  const me = useSuspenseQuery(meQuery).data;
  // Nobody misses it where it runs.
  const why = allows(experiment, "pause") ? undefined : whyNotContinued(experiment, mayChange(me, experiment.userId));
  useCommands(actions);
  return (
    <ActionButtons actions={actions} label={`More actions for experiment ${experiment.id}`} shown={2}>
      {why && <MenuReason why={why}>Continue</MenuReason>}
    </ActionButtons>
  );
}

/** The first ones as buttons, the rest in a menu; what cannot be taken back is never the nearest. */
export function ActionButtons(props: { actions: Action[]; label: string; shown: number; children?: ReactNode }) {
  const { actions, label, shown } = props;
  const near = actions.filter((action) => action.name && !action.danger).slice(0, shown);
  const rest = actions.filter((action) => !near.includes(action));
  const keysFor = (action: Action) => action.name && keysOf(action.name);
  return (
    <div className="flex flex-wrap items-center gap-2">
      {near.map((action) => (
        <Button key={action.short} onClick={action.run} aria-keyshortcuts={keysFor(action)}>
          {action.short}
        </Button>
      ))}
      {rest.length > 0 && (
        <Menu framed label={label} trigger={<>More ▾</>}>
          {rest.map((action) => (
            <MenuItem key={action.short} onSelect={action.run} keys={keysFor(action)} danger={action.danger}>
              {action.short}
            </MenuItem>
          ))}
          {props.children}
        </Menu>
      )}
    </div>
  );
}
