/** Quotas that hold: what everybody may have, has used, and whose turn it is. Without any nothing is shown. */

import { useQuery } from "@tanstack/react-query";
import { count } from "../format";
import { type QuotaLine, quotasQuery } from "../services/quotas";
import { Section } from "../ui/Page";
import { Table } from "../ui/Table";

export function Quotas() {
  const quotas = useQuery(quotasQuery).data;
  if (!quotas?.applied || quotas.lines.length === 0) return null;
  const days = (quotas.halfLifeHours ?? 0) / 24;
  return (
    <Section title="Quotas">
      <Table label="Quotas" columns={COLUMNS} rows={quotas.lines} keyOf={(line) => `${line.kind} ${line.name}`} />
      <p className="text-dim">
        At the same priority those come first whose workspace has used least for its weight, and in it those who have.
        What was used counts half after {decimals.format(days)} {days === 1 ? "day" : "days"}. Limits bind what would
        start: what runs goes on.
      </p>
    </Section>
  );
}

const right = "right" as const;
const COLUMNS = [
  { id: "name", title: "Of", name: true, cell: (line: QuotaLine) => <span title={line.name}>{line.name}</span> },
  { id: "turn", title: "Turn", align: right, cell: (line: QuotaLine) => (line.turn == null ? "" : count(line.turn)) },
  {
    id: "weight",
    title: "Weight",
    align: right,
    cell: (line: QuotaLine) => (line.kind === "group" ? "" : line.weight),
  },
  { id: "share", title: "Share", align: right, cell: (line: QuotaLine) => percent(line.share) },
  { id: "lately", title: "Used lately", align: right, cell: (line: QuotaLine) => percent(line.usedShare) },
  { id: "slots", title: "Slots", align: right, cell: (line: QuotaLine) => of(line.heldSlots, line.maxSlots) },
  {
    id: "month",
    title: "Slot hours this month",
    align: right,
    cell: (line: QuotaLine) => of(line.usedSlotHours, line.slotHours),
  },
  { id: "priority", title: "Priority from", align: right, cell: (line: QuotaLine) => line.priority ?? "" },
];

const decimals = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

function of(used: number, most: number | null | undefined): string {
  return most == null ? decimals.format(used) : `${decimals.format(used)} of ${decimals.format(most)}`;
}

function percent(part: number | null | undefined): string {
  return part == null ? "" : `${(part * 100).toFixed(0)} %`;
}
