/** What the columns of the table of experiments are called and hold; metrics and hyperparameters come from the project. */

import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { bytes, count } from "../../format";
import { hyperparameterOf, metricOf, type Placed, type ProjectColumn, textOf } from "../../services/columns";
import type { Experiment } from "../../services/experiments";
import type { Column } from "../../ui/Grid";
import { StateMark } from "../../ui/State";
import { Elapsed, Moment, Progress, Value } from "../../ui/values";

interface Own {
  title: string;
  width: number;
  align?: "right";
  /** Labels have no order. */
  unsorted?: boolean;
  cell: (row: Experiment) => ReactNode;
}

/** By the names of the master's catalogue. */
const OWN: Record<string, Own> = {
  id: { title: "ID", width: 64, align: "right", cell: (row) => row.id },
  name: {
    title: "Name",
    width: 240,
    cell: (row) => (
      <Link
        to="/experiments/$experimentId"
        params={{ experimentId: row.id }}
        tabIndex={-1}
        className="hover:underline"
        title={row.name}
      >
        {row.name}
        {row.archived && <span className="text-dim"> · archived</span>}
      </Link>
    ),
  },
  state: { title: "State", width: 130, cell: (row) => <StateMark state={row.state} reason={row.reason} /> },
  progress: {
    title: "Progress",
    width: 130,
    cell: (row) => <Progress share={row.progress ?? 0} label={`Progress of experiment ${row.id}`} />,
  },
  searcherMetricsVal: {
    title: "Best metric",
    width: 100,
    align: "right",
    cell: (row) => <Value value={row.bestTrialSearcherMetric} />,
  },
  searcherMetric: { title: "Metric", width: 120, cell: (row) => <Dim text={row.searcherMetric} /> },
  numTrials: { title: "Trials", width: 70, align: "right", cell: (row) => count(row.numTrials ?? 0) },
  user: { title: "Owner", width: 110, cell: (row) => row.username },
  startTime: { title: "Started", width: 100, cell: (row) => <Moment at={row.startTime} /> },
  duration: {
    title: "Took",
    width: 100,
    align: "right",
    cell: (row) => (
      <span title="from its submission to its end, or until now">
        <Elapsed seconds={row.duration} asOf={row.asOf} runs={!row.endTime} />
      </span>
    ),
  },
  endTime: { title: "Ended", width: 100, cell: (row) => <Moment at={row.endTime} /> },
  description: { title: "Description", width: 200, cell: (row) => <Dim text={row.description} /> },
  tags: { title: "Labels", width: 140, unsorted: true, cell: (row) => <Dim text={row.labels.join(", ")} /> },
  resourcePool: { title: "Pool", width: 110, cell: (row) => row.resourcePool },
  searcherType: { title: "Searcher", width: 120, cell: (row) => row.searcherType },
  checkpointCount: { title: "Checkpoints", width: 110, align: "right", cell: (row) => count(row.checkpointCount) },
  checkpointSize: {
    title: "Checkpoint size",
    width: 130,
    align: "right",
    cell: (row) => bytes(Number(row.checkpointSize)),
  },
  forkedFrom: { title: "Forked from", width: 100, align: "right", cell: (row) => row.forkedFrom ?? "–" },
  projectId: { title: "Project", width: 80, align: "right", cell: (row) => row.projectId },
};

const SHOWN = ["id", "name", "state", "progress", "searcherMetricsVal", "searcherMetric", "numTrials", "user"];
const PINNED = new Set(["id", "name", "state"]);

/** What a table shows until somebody chooses. */
export const DEFAULT_COLUMNS: Placed[] = [...SHOWN, "startTime", "duration"].map((id) => placedAt(id, PINNED.has(id)));

export function placedAt(id: string, pinned = false): Placed {
  return { id, width: OWN[id]?.width ?? 120, pinned };
}

export type Kind = "General" | "Metrics" | "Hyperparameters";

export interface Choice {
  id: string;
  title: string;
  kind: Kind;
}

/** All columns that may be shown; without a project those that each table has. */
export function choicesOf(catalogue: readonly ProjectColumn[]): Choice[] {
  const own = Object.entries(OWN).map(([id, { title }]): Choice => ({ id, title, kind: "General" }));
  const others = catalogue
    .map((each) => each.column)
    .filter((id) => !(id in OWN) && id.includes("."))
    .map((id): Choice => ({ id, title: titleOf(id), kind: kindOf(id) }));
  return [...own, ...others];
}

function kindOf(id: string): Kind {
  return id.startsWith("hp.") ? "Hyperparameters" : "Metrics";
}

/** `lr`, `loss` (of validation, the last), `training loss`, `loss min`. */
export function titleOf(id: string): string {
  const own = OWN[id];
  if (own) return own.title;
  if (id.startsWith("hp.")) return id.slice("hp.".length);
  const [group = ""] = id.split(".", 1);
  const end = id.lastIndexOf(".");
  const qualifier = id.slice(end + 1);
  const name = id.slice(group.length + 1, end);
  return [group === "validation" ? "" : group, name, qualifier === "last" ? "" : qualifier].filter(Boolean).join(" ");
}

/** Whether anything can stand there: an address may name what never was. */
function isColumn(id: string): boolean {
  return id in OWN || id.startsWith("hp.") || /^[^.]+\..+\.(last|min|max|mean)$/s.test(id);
}

/** As the table draws them. The master splits orders at commas. */
export function drawn(placed: readonly Placed[]): Column<Experiment>[] {
  return placed
    .filter(({ id }) => isColumn(id))
    .map(({ id, width, pinned }) => {
      const own = OWN[id];
      const sort = own?.unsorted || id.includes(",") ? undefined : id;
      const column = { id, title: titleOf(id), width: `${width}px`, px: width, pinned, sort };
      if (own) return { ...column, align: own.align, cell: own.cell };
      const value = kindOf(id) === "Metrics" ? metricOf : hyperparameterOf;
      return { ...column, align: "right" as const, cell: (row: Experiment) => <Anything value={value(row, id)} /> };
    });
}

function Dim({ text }: { text: string }) {
  return (
    <span className="text-dim" title={text}>
      {text || "–"}
    </span>
  );
}

function Anything({ value }: { value: unknown }) {
  if (value === undefined || value === null) return <span className="text-dim">–</span>;
  if (typeof value === "number") return <Value value={value} />;
  const text = textOf(value);
  return <span title={text}>{text}</span>;
}
