/** What metrics are now: the newest value of each, and between which it was. */

import { useMemo, useState } from "react";
import { count } from "../../format";
import type { Summaries, Summary } from "../../services/trials";
import { Button } from "../../ui/Button";
import { Table } from "../../ui/Table";
import { Value } from "../../ui/values";
import { visible } from "../../visible";

/** Rows that are there at first, and more that come when asked for. */
const ROWS = 200;

interface Row {
  group: string;
  name: string;
  summary: Summary;
}

export function rowsOf(summaries: Summaries, matches: (name: string) => boolean): Row[] {
  const rows = Object.entries(summaries).flatMap(([group, metrics]) =>
    Object.entries(metrics).map(([name, summary]) => ({ group, name, summary })),
  );
  return rows
    .filter(({ name }) => matches(name))
    .filter(({ summary }) => summary.type !== "object")
    .sort((a, b) => a.name.localeCompare(b.name) || a.group.localeCompare(b.group));
}

interface LatestValuesProps {
  summaries: Summaries;
  /** Of which metrics. */
  matches: (name: string) => boolean;
}

export function LatestValues({ summaries, matches }: LatestValuesProps) {
  const rows = useMemo(() => rowsOf(summaries, matches), [summaries, matches]);
  const [shown, show] = useState(ROWS);
  const numeric = (id: keyof Summary, title: string) => ({
    id,
    title,
    align: "right" as const,
    cell: ({ summary }: Row) => <Reported value={summary[id]} />,
  });
  return (
    <>
      <Table
        label="Latest values"
        rows={rows.slice(0, shown)}
        keyOf={({ group, name }) => `${group}\n${name}`}
        columns={[
          {
            id: "name",
            title: "Metric",
            wide: true,
            cell: ({ name }) => <span title={visible(name)}>{visible(name)}</span>,
          },
          { id: "group", title: "Group", cell: ({ group }) => group },
          numeric("last", "Last"),
          numeric("min", "Least"),
          numeric("max", "Greatest"),
          numeric("mean", "Mean"),
          numeric("count", "Reports"),
        ]}
      />
      {rows.length > shown && (
        <Button className="self-start" onClick={() => show(shown + ROWS)}>
          Show more of the {count(rows.length)} metrics
        </Button>
      )}
    </>
  );
}

/** Numbers that are none are words on the wire. */
function Reported({ value }: { value: unknown }) {
  if (typeof value === "number" || value === null || value === undefined) return <Value value={value as number} />;
  return (
    <span className="inline-block max-w-60 truncate align-bottom">
      {typeof value === "string" ? value : JSON.stringify(value)}
    </span>
  );
}
