/** What the trials were made with: hyperparameters and configurations side by side, what differs first. */

import { useQueries } from "@tanstack/react-query";
import { hovering, useIsHovered } from "../charts/hovered";
import type { Look } from "../charts/palette";
import type { ComparedTrial } from "../services/comparing";
import { experimentQuery } from "../services/experiments";
import { LIVE } from "../services/live";
import { Problem } from "../ui/notices";
import { Section } from "../ui/Page";
import { visible } from "../visible";
import { leaves, type Setting, settings } from "./differences";
import { Swatch } from "./Legend";

interface DiffProps {
  trials: ComparedTrial[];
  looks: ReadonlyMap<number, Look>;
  /** Also what is the same everywhere. */
  all: boolean;
  onAll: (all: boolean) => void;
}

export function Diff({ trials, looks, all, onAll }: DiffProps) {
  const experiments = [...new Set(trials.map((trial) => trial.experiment.id))];
  const shown = useQueries({ queries: experiments.map((id) => ({ ...experimentQuery(id), ...LIVE })) });
  const configurations = new Map(shown.map((each, place) => [experiments[place], each.data?.experiment.config]));
  const problem = shown.find((each) => each.error)?.error;
  const hyperparameters = settings(trials.map((trial) => leaves(trial.hyperparameters)));
  const configured = settings(
    trials.map((trial) => {
      // What is searched stands above, as it was drawn.
      const { hyperparameters: _, ...rest } = (configurations.get(trial.experiment.id) ?? {}) as Record<
        string,
        unknown
      >;
      return leaves(rest);
    }),
  );
  const waits = shown.some((each) => each.isPending);
  return (
    <>
      <label className="-mb-2 flex min-h-7 items-center gap-1.5">
        <input
          type="checkbox"
          className="size-4 accent-(--accent)"
          checked={!all}
          onChange={(event) => onAll(!event.target.checked)}
        />
        Only differences
      </label>
      {problem && <Problem error={problem} />}
      <Settings title="Hyperparameters" found={hyperparameters} trials={trials} looks={looks} all={all} />
      {waits ? (
        <p className="appears-late text-dim">Loading configurations…</p>
      ) : (
        <Settings title="Configuration" found={configured} trials={trials} looks={looks} all={all} />
      )}
    </>
  );
}

interface SettingsProps {
  title: string;
  found: Setting[];
  trials: ComparedTrial[];
  looks: ReadonlyMap<number, Look>;
  all: boolean;
}

function Settings({ title, found, trials, looks, all }: SettingsProps) {
  const differing = found.filter((setting) => setting.differs).length;
  const rows = all ? found : found.slice(0, differing);
  const equal = found.length - differing;
  return (
    <Section
      title={title}
      aside={
        <p className="text-dim">
          {differing} {differing === 1 ? "differs" : "differ"}, {equal} {equal === 1 ? "is" : "are"} the same
        </p>
      }
    >
      {rows.length > 0 && (
        <section
          aria-label={title}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard.
          tabIndex={0}
          className="max-h-[70vh] overflow-auto rounded-md border border-line"
        >
          <table className="border-collapse">
            <thead className="sticky top-0 z-10">
              <tr className="border-line border-b bg-raised text-left text-sm">
                <th scope="col" className="sticky left-0 h-[30px] bg-raised px-2 font-medium text-dim">
                  Name
                </th>
                {trials.map((trial) => (
                  <Heading key={trial.id} trial={trial.id} look={looks.get(trial.id)} />
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((setting) => (
                <tr
                  key={setting.name}
                  data-differs={setting.differs}
                  className={`border-line border-b last:border-b-0 ${setting.differs ? "" : "text-dim"}`}
                >
                  <th
                    scope="row"
                    className="sticky left-0 h-7 max-w-64 truncate bg-surface px-2 text-left font-medium"
                    title={visible(setting.name)}
                  >
                    {visible(setting.name)}
                  </th>
                  {setting.values.map((value, place) => (
                    <Cell key={trials[place]?.id} trial={trials[place]?.id ?? 0} value={value} />
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </Section>
  );
}

function Heading({ trial, look }: { trial: number; look?: Look }) {
  const isHovered = useIsHovered(trial);
  return (
    <th
      scope="col"
      data-hovered={isHovered || undefined}
      className={`whitespace-nowrap px-2 font-medium ${isHovered ? "bg-hover" : ""}`}
      {...hovering(trial)}
    >
      <span className="flex items-center gap-1.5">
        <Swatch look={look} /> Trial {trial}
      </span>
    </th>
  );
}

function Cell({ trial, value }: { trial: number; value: string | undefined }) {
  const isHovered = useIsHovered(trial);
  return (
    <td
      className={`max-w-60 truncate whitespace-nowrap px-2 ${isHovered ? "bg-hover" : ""}`}
      title={value && visible(value)}
      {...hovering(trial)}
    >
      {value === undefined ? "–" : visible(value)}
    </td>
  );
}
