/** The columns of a table: its own, and metrics, hyperparameters and metadata as the project has them. */

import { own } from "../../own";
import { heatOf, type Placed, type ProjectColumn, type Ranges, textOf } from "../../services/columns";
import type { Column } from "../../ui/Grid";
import { Value } from "../../ui/values";
import type { Kind } from "./kind";

export type Group = "General" | "Metrics" | "Hyperparameters" | "Metadata";

export interface Choice {
  id: string;
  title: string;
  group: Group;
}

/** All columns that may be shown; without a project those that each table has. */
export function choicesOf<R extends { id: number }>(kind: Kind<R>, catalogue: readonly ProjectColumn[]): Choice[] {
  const general = Object.entries(kind.own).map(([id, { title }]): Choice => ({ id, title, group: "General" }));
  const others = catalogue
    .map((each) => each.column)
    .filter((id) => !Object.hasOwn(kind.own, id) && id.includes("."))
    .map((id): Choice => ({ id, title: titleOf(kind, id), group: groupOf(id) }));
  return [...general, ...others];
}

function groupOf(id: string): Group {
  return id.startsWith("hp.") ? "Hyperparameters" : id.startsWith("metadata.") ? "Metadata" : "Metrics";
}

/** `lr`, `loss` (of validation, the last), `training loss`, `loss min`. */
export function titleOf<R extends { id: number }>(kind: Kind<R>, id: string): string {
  const general = own(kind.own, id);
  if (general) return general.title;
  const group = groupOf(id);
  if (group !== "Metrics") return id.slice(id.indexOf(".") + 1);
  const [of = ""] = id.split(".", 1);
  const end = id.lastIndexOf(".");
  const qualifier = id.slice(end + 1);
  const name = id.slice(of.length + 1, end);
  return [of === "validation" ? "" : of, name, qualifier === "last" ? "" : qualifier].filter(Boolean).join(" ");
}

/** Whether it may be a heat map: the master knows between which values it lies. */
export function hasHeat(id: string): boolean {
  return id === "searcherMetricsVal" || (id.includes(".") && groupOf(id) === "Metrics");
}

/** The metrics among columns, in an order that is the same however they are placed. */
export function metricsAmong(placed: readonly Placed[]): string[] {
  return placed.flatMap(({ id }) => (id.includes(".") && groupOf(id) === "Metrics" ? [id] : [])).sort();
}

/** Whether anything can stand there: an address may name what never was. */
function isColumn<R extends { id: number }>(kind: Kind<R>, id: string): boolean {
  return Object.hasOwn(kind.own, id) || /^(hp|metadata)\../.test(id) || /^[^.]+\..+\.(last|min|max|mean)$/s.test(id);
}

/** What stands in a cell, as a file has it. */
export function contentOf<R extends { id: number }>(kind: Kind<R>, row: R, id: string): unknown {
  const general = own(kind.own, id);
  if (general) return general.value(row);
  const group = groupOf(id);
  if (group === "Metrics") return kind.metric(row, id);
  return group === "Metadata" ? kind.metadata(row, id) : kind.hyperparameter(row, id);
}

/** As the table draws them. The master splits orders at commas. */
export function drawn<R extends { id: number }>(
  kind: Kind<R>,
  placed: readonly Placed[],
  ranges: Ranges | undefined,
): Column<R>[] {
  return placed
    .filter(({ id }) => isColumn(kind, id))
    .map(({ id, width, pinned, heat }): Column<R> => {
      const general = own(kind.own, id);
      const sort = general?.unsorted || id.includes(",") ? undefined : id;
      const range = heat && hasHeat(id) ? ranges?.get(id) : undefined;
      return {
        id,
        title: titleOf(kind, id),
        width: `${width}px`,
        px: width,
        pinned,
        sort,
        align: general ? general.align : "right",
        cell: general ? general.cell : (row) => <Anything value={contentOf(kind, row, id)} />,
        ...(range && { heat: (row: R) => heatOf(contentOf(kind, row, id), range) }),
      };
    });
}

function Anything({ value }: { value: unknown }) {
  if (value === undefined || value === null) return <span className="text-dim">–</span>;
  if (typeof value === "number") return <Value value={value} />;
  const text = textOf(value);
  return <span title={text}>{text}</span>;
}
