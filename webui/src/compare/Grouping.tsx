/** By what the compared trials are grouped, and how each group did: how many, mean, deviation, least and greatest. */

import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { type BandOf, spreadOf, type TrialGroup } from "../charts/groups";
import { hovering, useIsHovered } from "../charts/hovered";
import type { Look } from "../charts/palette";
import { count } from "../format";
import type { ComparedTrial } from "../services/comparing";
import { Button, FIELD } from "../ui/Button";
import { Dialog, DialogBody } from "../ui/Dialog";
import { openDialog } from "../ui/overlays";
import { Value } from "../ui/values";
import { visible } from "../visible";
import { Swatch } from "./Legend";

/** `lr 0.1, width 64`. */
export function groupName({ values, trials }: TrialGroup, by: readonly string[]): string {
  const parts = by.map((name, place) => visible(`${name} ${values[place] ?? "–"}`));
  return parts.join(", ") || `${count(trials.length)} trials`;
}

interface GroupingProps {
  /** Hyperparameters in which the trials differ. */
  varying: string[];
  by?: string[];
  band: BandOf;
  onBy: (by: string[] | undefined) => void;
  onBand: (band: BandOf) => void;
}

export function Grouping({ varying, by, band, onBy, onBand }: GroupingProps) {
  const choose = () => openDialog((close) => <GroupDialog varying={varying} by={by} onBy={onBy} onClose={close} />);
  return (
    <>
      <Button onClick={choose} aria-pressed={by !== undefined} className="max-w-64">
        <span className="truncate">{by ? `Grouped by ${visible(by.join(", ")) || "nothing"}` : "Group…"}</span>
      </Button>
      {by && (
        <select
          aria-label="Band"
          className={FIELD}
          value={band}
          onChange={(event) => onBand(event.target.value === "range" ? "range" : "std")}
        >
          <option value="std">Mean ± deviation</option>
          <option value="range">Mean, lowest to highest</option>
        </select>
      )}
    </>
  );
}

function GroupDialog(props: {
  varying: string[];
  by?: string[];
  onBy: (by: string[] | undefined) => void;
  onClose: () => void;
}) {
  const { varying, onBy, onClose } = props;
  const seeds = varying.filter((name) => /seed/i.test(name));
  const [by, setBy] = useState(props.by ?? varying.filter((name) => !seeds.includes(name)));
  const use = (chosen: string[] | undefined) => {
    onClose();
    onBy(chosen);
  };
  return (
    <Dialog title="Group trials" onClose={onClose}>
      <DialogBody
        buttons={
          <>
            <Button onClick={() => use(undefined)}>Do not group</Button>
            <Button look="primary" onClick={() => use(by)}>
              Group
            </Button>
          </>
        }
      >
        <p className="text-dim">
          Trials with the same values for what is checked become one line: their mean and their spread.
        </p>
        {varying.length === 0 && <p>They differ in no hyperparameter, so all of them form one group.</p>}
        {varying.length > 1 && (
          <div className="flex flex-wrap gap-2">
            <Button onClick={() => setBy(varying)}>All</Button>
            {seeds.map((seed) => (
              <Button key={seed} onClick={() => setBy(varying.filter((name) => name !== seed))}>
                All but {visible(seed)}
              </Button>
            ))}
          </div>
        )}
        <fieldset className="flex flex-col">
          <legend className="sr-only">Grouped by</legend>
          {varying.map((name) => (
            <label key={name} className="flex min-h-7 items-center gap-2">
              <input
                type="checkbox"
                className="size-4 shrink-0 accent-(--accent)"
                checked={by.includes(name)}
                onChange={(event) =>
                  setBy(varying.filter((each) => (each === name ? event.target.checked : by.includes(each))))
                }
              />
              <span className="truncate">{visible(name)}</span>
            </label>
          ))}
        </fieldset>
      </DialogBody>
    </Dialog>
  );
}

interface GroupsProps {
  groups: TrialGroup[];
  by: string[];
  trials: ComparedTrial[];
  looks: ReadonlyMap<number, Look>;
}

export function Groups({ groups, by, trials, looks }: GroupsProps) {
  const byId = new Map(trials.map((trial) => [trial.id, trial]));
  const metrics = [...new Set(trials.map((trial) => trial.experiment.searcherMetric))].filter(Boolean);
  const [only, ...others] = metrics;
  const mean = only && others.length === 0 ? `Mean ${only}` : "Mean";
  const head = [...by, "Trials", mean, "Deviation", "Least", "Greatest"];
  return (
    <section
      aria-label="Groups"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard.
      tabIndex={0}
      className="max-h-72 shrink-0 overflow-auto rounded-md border border-line"
    >
      <table className="w-full border-collapse">
        <caption className="sr-only">
          {visible(`Groups of trials, by their best ${metrics.join(", ") || "metric"}`)}
        </caption>
        <thead className="sticky top-0 z-10">
          <tr className="border-line border-b bg-raised text-left text-dim text-sm">
            <th scope="col" className="h-[30px] px-2 font-medium">
              <span className="sr-only">Line</span>
            </th>
            {head.map((title, place) => (
              <th
                key={place}
                scope="col"
                title={place > by.length ? visible(`of the best ${metrics.join(", ")} of each trial`) : undefined}
                className={`max-w-48 truncate px-2 font-medium ${place > by.length ? "text-right" : ""}`}
              >
                {visible(title)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {groups.map((group) => (
            <GroupRow key={group.id} group={group} byId={byId} look={looks.get(group.id)} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function GroupRow(props: { group: TrialGroup; byId: ReadonlyMap<number, ComparedTrial>; look?: Look }) {
  const { group, byId, look } = props;
  const isHovered = useIsHovered(group.id);
  const values = group.trials.flatMap((id) => byId.get(id)?.searcherMetricValue ?? []);
  const spread = spreadOf(values);
  return (
    <tr
      data-group={group.id}
      data-hovered={isHovered || undefined}
      className={`border-line border-b last:border-b-0 ${isHovered ? "bg-hover" : ""}`}
      {...hovering(group.id)}
    >
      <td className="h-8 px-2">
        <Swatch look={look} />
      </td>
      {group.values.map((value, place) => (
        <td key={place} className="max-w-48 truncate px-2" title={value && visible(value)}>
          {value === undefined ? "–" : visible(value)}
        </td>
      ))}
      <td className="px-2">
        <Link
          to="/compare"
          search={{ trials: group.trials.join(",") }}
          className="underline hover:text-accent"
          title={`Compare only trials ${group.trials.join(", ")}`}
        >
          {count(group.trials.length)}
        </Link>
      </td>
      {[spread?.mean, spread?.std, spread?.least, spread?.greatest].map((value, place) => (
        <td key={place} className="px-2 text-right">
          <Value value={value} />
        </td>
      ))}
    </tr>
  );
}
