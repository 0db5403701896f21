/** What rented machines cost, with what was idle as a row of its own, and budgets. Where nothing is rented it is not there. */

import { useQuery } from "@tanstack/react-query";
import { count } from "../format";
import { budgetsQuery, COST_BY, costsQuery, type MachineBudget, type MachineCost } from "../services/machines";
import type { UsageBy } from "../services/usage";
import { Problem } from "../ui/notices";
import { Section } from "../ui/Page";
import { Table } from "../ui/Table";
import { Moment } from "../ui/values";
import { visible } from "../visible";
import type { Span } from "./sums";

/** Rows of the table. */
const MOST = 200;
const right = "right" as const;
const small = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const cents = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const TITLES = { user: "User", workspace: "Workspace", project: "Project", pool: "Pool" };

export function Machines({ by: asked, span }: { by: UsageBy; span: Span }) {
  const by = COST_BY.find((each) => each === asked) ?? "user";
  const found = useQuery(costsQuery(by, span.from, span.to));
  const budgets = useQuery(budgetsQuery).data ?? [];
  const costs = found.data;
  if (found.error && !costs) return <Problem error={found.error} retry={() => void found.refetch()} />;
  const rented = costs !== undefined && costs.costs.length > 0;
  if (!rented && budgets.length === 0) return null;
  return (
    <Section title="Rented machines">
      {rented && <Costs title={TITLES[by]} rows={costs.costs} total={costs.total} />}
      {budgets.length > 0 && <Budgets budgets={budgets} />}
    </Section>
  );
}

function Costs({ title, rows, total }: { title: string; rows: MachineCost[]; total: MachineCost }) {
  const isUnpriced = (total.unpricedHours ?? 0) > 0;
  // What is idle is last, and stays.
  const shown = rows.length > MOST ? [...rows.slice(0, MOST - 1), ...rows.slice(-1)] : rows;
  return (
    <>
      <p role="status" aria-label="Total cost">
        <b className="font-semibold">{money(total)}</b> for <b className="font-semibold">{small.format(total.hours)}</b>{" "}
        machine hours
      </p>
      <Table
        label={`Cost by ${title.toLowerCase()}`}
        rows={shown}
        keyOf={(row) => (row.idle ? "idle" : `of ${row.name}`)}
        columns={[
          { id: "name", title, name: true, cell: (row) => <Name row={row} /> },
          { id: "cost", title: "Cost", align: right, cell: money },
          { id: "hours", title: "Machine hours", align: right, cell: (row) => small.format(row.hours) },
          ...(isUnpriced
            ? [
                {
                  id: "unpriced",
                  title: "Without a price",
                  align: right,
                  cell: (row: MachineCost) => (row.unpricedHours ? small.format(row.unpricedHours) : ""),
                },
              ]
            : []),
        ]}
      />
      <p className="text-dim">
        By the prices in the settings, divided by slots and time among what ran. Idle is what nothing used: machines
        that start or stop, and free slots.
        {shown.length < rows.length && ` These are ${count(shown.length)} of ${count(rows.length)} rows.`}
      </p>
    </>
  );
}

function Name({ row }: { row: MachineCost }) {
  if (row.idle) return <span className="text-dim">Idle</span>;
  const name = visible(row.name ?? "") || "–";
  return <span title={name}>{name}</span>;
}

/** Without a price nobody knows. */
function money(of: MachineCost): string {
  return of.cost === null || of.cost === undefined ? "unknown" : cents.format(of.cost);
}

const STAGES: Record<string, [string, string]> = {
  WITHIN: ["✓ Within", "text-ok"],
  NEARLY: ["! Nearly used up", "text-wait"],
  USED_UP: ["✕ Used up", "text-bad"],
};

function Budgets({ budgets }: { budgets: MachineBudget[] }) {
  return (
    <Table
      label="Budgets of this month"
      rows={budgets}
      keyOf={(budget) => budget.resourcePool ?? ""}
      columns={[
        {
          id: "pool",
          title: "Budget of",
          name: true,
          cell: (budget) => visible(budget.resourcePool ?? "") || "All pools",
        },
        {
          id: "spent",
          title: "Spent this month",
          align: right,
          cell: (budget) => `${cents.format(budget.spent)} of ${cents.format(budget.perMonth)}`,
        },
        {
          id: "stage",
          title: "State",
          cell: (budget) => {
            const [word, look] = STAGES[budget.stage] ?? [budget.stage, ""];
            return (
              <span className={look} title={budget.warning}>
                {word}
              </span>
            );
          },
        },
        {
          id: "then",
          title: "Once it is used up",
          cell: (budget) => (budget.stops ? "nothing is rented, machines are let go" : "nothing is rented"),
        },
        { id: "until", title: "Starts anew", cell: (budget) => <Moment at={budget.until} /> },
      ]}
    />
  );
}
