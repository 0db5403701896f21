/** Quotas that hold: what everybody may have, has used, and whose turn it is. Without any nothing is shown. */

import { useQuery } from "@tanstack/react-query";
import { count } from "../format";
import { type QuotaLine, quotasQuery } from "../services/quotas";
import { Section } from "../ui/Page";
import { Table } from "../ui/Table";

export function Quotas() {
  const quotas = useQuery(quotasQuery).data;
  if (!quotas?.applied || quotas.lines.length === 0) return null;
  const lines = quotas.lines.slice(0, MOST);
  return (
    <Section title="Quotas">
      <Table
        label="Quotas"
        columns={COLUMNS}
        rows={lines}
        keyOf={(line) => `${line.kind} ${line.id} ${line.workspaceId}`}
      />
      <p className="text-dim">
        At the same priority, those whose workspace has used least for its weight come first, and within a workspace,
        those who have used least. Use counts half after {span(quotas.halfLifeHours ?? 0)}. Limits apply to what would
        start; what is running goes on.
        {quotas.notThere.length > 0 &&
          ` These were renamed or deleted since the file was applied, and have no quota: ${quotas.notThere.join(", ")}.`}
        {quotas.lines.length > MOST &&
          ` These are the first ${count(MOST)} of ${count(quotas.lines.length)}: tenax quota show prints all.`}
      </p>
    </Section>
  );
}

/** Lines on the page. */
const MOST = 200;

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
  { id: "lately", title: "Recent use", align: right, cell: (line: QuotaLine) => percent(line.usedShare) },
  { id: "slots", title: "Slots", align: right, cell: (line: QuotaLine) => of(line, line.heldSlots, line.maxSlots) },
  {
    id: "month",
    title: "Slot hours this month",
    align: right,
    cell: (line: QuotaLine) => of(line, line.usedSlotHours, line.slotHours),
  },
  { id: "priority", title: "Priority from", align: right, cell: (line: QuotaLine) => line.priority ?? "" },
];

const small = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const exact = new Intl.NumberFormat("en", { maximumFractionDigits: 6 });

function of(line: QuotaLine, used: number, most: number | null | undefined): string {
  if (line.kind === "everyone") return most == null ? "" : `${exact.format(most)} each`;
  const shown = (used >= 100 ? whole : small).format(used);
  return most == null ? shown : `${shown} of ${exact.format(most)}`;
}

function span(hours: number): string {
  const [number, unit] = hours % 24 === 0 ? [hours / 24, "day"] : [hours, "hour"];
  return `${exact.format(number)} ${unit}${number === 1 ? "" : "s"}`;
}

function percent(part: number | null | undefined): string {
  return part == null ? "" : `${(part * 100).toFixed(0)} %`;
}
