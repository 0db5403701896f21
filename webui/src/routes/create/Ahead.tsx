/** What the master says of a draft: what is wrong with it, or what it would do and where it would fit. */

import type { UseQueryResult } from "@tanstack/react-query";
import { count } from "../../format";
import { Refused } from "../../services/client";
import { poolsQuery } from "../../services/cluster";
import { useLive } from "../../services/live";
import type { Checked, Forecast } from "../../services/submissions";
import { Facts } from "../../ui/Facts";
import { Loading, Problem } from "../../ui/notices";
import { Section } from "../../ui/Page";
import { Table } from "../../ui/Table";

interface Props {
  checked: Pick<UseQueryResult<Checked>, "data" | "error"> & { isOld: boolean; refetch: () => unknown };
  problems: { line?: number; message: string }[];
  goTo: (line: number) => void;
}

export function Ahead({ checked, problems, goTo }: Props) {
  const { data, error } = checked;
  if (error && !(error instanceof Refused)) return <Problem error={error} retry={() => void checked.refetch()} />;
  if (problems.length > 0) {
    return (
      <Section title={problems.length === 1 ? "One problem" : `${count(problems.length)} problems`}>
        <ul aria-label="Problems" className="flex flex-col gap-1">
          {problems.map(({ line, message }) => (
            <li key={`${line}:${message}`} className="break-words">
              {line !== undefined && (
                <button type="button" className="min-h-6 text-bad underline" onClick={() => goTo(line)}>
                  Line {line}
                </button>
              )}{" "}
              {message}
            </li>
          ))}
        </ul>
      </Section>
    );
  }
  if (!data) return <Loading what="what it would do" />;
  return (
    <div className={`flex flex-col gap-4 ${checked.isOld ? "opacity-95 grayscale" : ""}`}>
      <Search checked={data} />
      <Fit checked={data} />
    </div>
  );
}

function Search({ checked }: { checked: Checked }) {
  const trials = checked.ahead.reduce((sum, row) => sum + row.count, 0);
  return (
    <Section title={trials === 1 ? "It would train one trial" : `It would train ${count(trials)} trials`}>
      <Table
        label="Trials that it would train"
        rows={checked.ahead.map((row, place) => ({ ...row, place }))}
        keyOf={(row) => row.place}
        columns={[
          { id: "count", title: "Trials", align: "right", cell: (row) => count(row.count) },
          { id: "length", title: "Train for", wide: true, cell: (row) => row.length },
        ]}
      />
    </Section>
  );
}

function Fit({ checked }: { checked: Checked }) {
  const pools = useLive(poolsQuery).data ?? [];
  const { experiment, forecast, notices = [] } = checked.sent;
  const pool = pools.find((each) => each.name === experiment.resourcePool);
  const resources = (experiment.config?.resources ?? {}) as { slots_per_trial?: number };
  return (
    <Section title="Where it would run">
      <Facts
        facts={[
          ["Pool", experiment.resourcePool || "–"],
          ["Slots per trial", count(resources.slots_per_trial ?? 1)],
          ["Free now", pool ? `${count(pool.slotsAvailable - pool.slotsUsed)} of ${count(pool.slotsAvailable)}` : "–"],
          ["Jobs waiting", pool ? count(pool.stats.queuedCount ?? 0) : "–"],
        ]}
      />
      {forecast && <Start forecast={forecast} />}
      {notices.length > 0 && (
        <ul aria-label="Notices" className="flex flex-col gap-1">
          {notices.map((notice) => (
            <li key={notice} className="break-words text-wait">
              ! {notice}
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

/** What the next pass over the pool would do with its first trials. */
function Start({ forecast }: { forecast: Forecast }) {
  const { trials, starting, leaving = 0, reason } = forecast;
  const what = trials === 1 ? "Its trial" : `Its first ${count(trials)} trials`;
  return (
    <p className="break-words">
      {starting === trials
        ? `${what} would start at once.`
        : starting > 0
          ? `${count(starting)} of its first ${count(trials)} trials would start at once; the next ${reason}.`
          : `Nothing of it would start at once: its first trial ${reason}.`}
      {leaving > 0 && ` ${count(leaving)} of what runs would be asked to save and leave for it.`}
    </p>
  );
}
