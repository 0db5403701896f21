/** Of days and months: which are asked for, and what they come to. Days are those of UTC, as the master's accounts are. Pure. */

import type { Share } from "../services/usage";
import type { PeriodName } from "./address";

/** From the first moment of `from` to the last of `to`. */
export interface Span {
  from: string;
  to: string;
}

const DAY_MS = 86_400_000;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

/** So many days later. */
export function plus(day: string, days: number): string {
  return dayOf(Date.parse(day) + days * DAY_MS);
}

/** How many days it has. */
export function daysOf({ from, to }: Span): number {
  return Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1;
}

/** What people ask for most, by name. */
export function usual(today: string): Record<string, Span> {
  const month = today.slice(0, 7);
  const before = plus(`${month}-01`, -1);
  const year = `${Number(today.slice(0, 4)) - 1}${today.slice(4, 7)}`;
  return {
    "7 days": { from: plus(today, -6), to: today },
    "30 days": { from: plus(today, -29), to: today },
    "This month": { from: `${month}-01`, to: today },
    "Last month": { from: `${before.slice(0, 7)}-01`, to: before },
    "12 months": { from: plus(`${year}-01`, 31).slice(0, 8).concat("01"), to: today },
  };
}

/** What the address says, as far as it says it; the last 30 days otherwise. Ends that are the wrong way round are changed. */
export function spanOf(said: Partial<Span>, today: string): Span {
  const to = said.to ?? (said.from && said.from > today ? said.from : today);
  const from = said.from ?? plus(to, -29);
  return from <= to ? { from, to } : { from: to, to: from };
}

/** As many bars as can be told from one another. */
export function periodOf(span: Span): PeriodName {
  const days = daysOf(span);
  return days <= 45 ? "day" : days <= 200 ? "week" : "month";
}

/** The Monday of its week, or the first day of what is asked for. */
function weekOf(day: string): string {
  const time = Date.parse(day);
  return dayOf(time - ((new Date(time).getUTCDay() + 6) % 7) * DAY_MS);
}

/** Names are anybody's: `constructor` is one that an object has by itself. */
function at(seconds: Record<string, number>, name: string): number {
  return Object.hasOwn(seconds, name) ? (seconds[name] ?? 0) : 0;
}

function add(to: Record<string, number>, more: Record<string, number>): void {
  for (const [name, seconds] of Object.entries(more)) to[name] = at(to, name) + seconds;
}

/** Days as weeks, which begin on Mondays. */
export function weekly(days: readonly Share[]): Share[] {
  const weeks = new Map<string, Share>();
  for (const day of days) {
    const begins = weekOf(day.begins);
    const week = weeks.get(begins) ?? {
      begins,
      total: 0,
      waitedTotal: 0,
      used: Object.create(null),
      waited: Object.create(null),
    };
    weeks.set(begins, week);
    week.total += day.total;
    week.waitedTotal += day.waitedTotal;
    add(week.used, day.used);
    add(week.waited, day.waited);
  }
  return [...weeks.values()];
}

/** What one user, one pool... comes to, in slot hours. */
export interface Sum {
  name: string;
  used: number;
  /** Of all that was used, from 0 to 1. */
  share: number;
  waited: number;
}

export interface Sums {
  used: number;
  waited: number;
  rows: Sum[];
}

export function summed(shares: readonly Share[]): Sums {
  const used: Record<string, number> = Object.create(null);
  const waited: Record<string, number> = Object.create(null);
  let [total, waitedTotal] = [0, 0];
  for (const share of shares) {
    add(used, share.used);
    add(waited, share.waited);
    total += share.total;
    waitedTotal += share.waitedTotal;
  }
  const names = new Set([...Object.keys(used), ...Object.keys(waited)]);
  const rows = [...names].map((name) => ({
    name,
    used: at(used, name) / 3600,
    share: total > 0 ? at(used, name) / total : 0,
    waited: at(waited, name) / 3600,
  }));
  return { used: total / 3600, waited: waitedTotal / 3600, rows: sorted(rows, "-used") };
}

export const SORTS = ["name", "used", "share", "waited"] as const;

/** By a column, from the greatest with `-` before it; among equals by name. */
export function sorted(rows: readonly Sum[], sort: string, wordOf = (name: string) => name): Sum[] {
  const way = sort.startsWith("-") ? -1 : 1;
  const column = SORTS.find((each) => each === sort.replace("-", "")) ?? "used";
  const byName = (a: Sum, b: Sum) => wordOf(a.name).localeCompare(wordOf(b.name), "en", { numeric: true });
  if (column === "name") return [...rows].sort((a, b) => way * byName(a, b));
  return [...rows].sort((a, b) => way * (a[column] - b[column]) || byName(a, b));
}

/** `Nov 21`, `Nov 2026`. */
export function labelOf(begins: string): string {
  const month = MONTHS[Number(begins.slice(5, 7)) - 1] ?? "";
  return begins.length === 7 ? `${month} ${begins.slice(0, 4)}` : `${month} ${Number(begins.slice(8))}`;
}

/** Slot hours of each period of those names, and of all others together where there are any. */
export function stacks(
  shares: readonly Share[],
  of: "used" | "waited",
  names: readonly string[],
): { names: number[][]; others: number[] | undefined } {
  const chosen = new Set(names);
  const others = shares.map((share) => {
    let seconds = 0;
    for (const name of Object.keys(share[of])) if (!chosen.has(name)) seconds += at(share[of], name);
    return seconds / 3600;
  });
  return {
    names: names.map((name) => shares.map((share) => at(share[of], name) / 3600)),
    others: others.some((hours) => hours > 0) ? others : undefined,
  };
}

/** Characters of a name above a chart. */
const SHORT = 28;

/** Names as they stand above a chart: cut, and each another. */
export function apart(names: readonly string[]): string[] {
  const known = new Set<string>();
  return names.map((name) => {
    const short = name.length > SHORT ? `${name.slice(0, SHORT - 1)}…` : name;
    let word = short;
    for (let more = 2; known.has(word); more++) word = `${short} (${more})`;
    known.add(word);
    return word;
  });
}
