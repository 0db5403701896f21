/** How values are written: numbers with four significant digits, times relative. */

/** `0.1234`, `1.24e-7`, `12.35M`; the full value belongs into the title. */
export function number(value: number | null | undefined): string {
  return rounded(value, 4);
}

/** The same with so many digits, where it has to be rounded. */
export function rounded(value: number | null | undefined, digits: number): string {
  if (value === null || value === undefined) return "–";
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-4) return value.toExponential(digits - 2);
  if (size >= 1e15) return value.toExponential(digits - 1);
  if (size >= 1e6) return formatOf("compact", digits).format(value);
  if (Number.isInteger(value)) return whole.format(value);
  return formatOf("standard", digits).format(value);
}

const formats = new Map<string, Intl.NumberFormat>();

function formatOf(notation: "standard" | "compact", digits: number): Intl.NumberFormat {
  const key = `${notation} ${digits}`;
  const known = formats.get(key);
  if (known) return known;
  const made = new Intl.NumberFormat("en", { notation, maximumSignificantDigits: digits, useGrouping: false });
  formats.set(key, made);
  return made;
}

const whole = new Intl.NumberFormat("en");

/** `1,234`. */
export function count(value: number): string {
  return whole.format(value);
}

/** `42 s`, `5 m 12 s`, `3 h 4 m`, `2 d 1 h`. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  const all = Math.max(0, Math.floor(seconds));
  if (all < 60) return `${all} s`;
  if (all < 3600) return two(Math.floor(all / 60), "m", all % 60, "s");
  if (all < 86400) return two(Math.floor(all / 3600), "h", Math.floor((all % 3600) / 60), "m");
  return two(Math.floor(all / 86400), "d", Math.floor((all % 86400) / 3600), "h");
}

function two(large: number, unit: string, small: number, smaller: string): string {
  return small === 0 ? `${large} ${unit}` : `${large} ${unit} ${small} ${smaller}`;
}

/** `512 B`, `1.5 KiB`. */
export function bytes(size: number): string {
  const place = size >= 1 ? Math.min(UNITS.length - 1, Math.floor(Math.log2(size) / 10)) : 0;
  return `${formatOf("standard", 4).format(size / 1024 ** place)} ${UNITS[place]}`;
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** `just now`, `5 m ago`; clocks that disagree never make it the future. */
export function ago(then: string | Date, now: Date = new Date()): string {
  const seconds = (now.getTime() - new Date(then).getTime()) / 1000;
  if (seconds < 10) return "just now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

/** `in 5 m`, `in 30 d`; what has passed is ago. */
export function until(then: string | Date, now: Date = new Date()): string {
  const seconds = (new Date(then).getTime() - now.getTime()) / 1000;
  if (seconds <= 0) return ago(then, now);
  if (seconds < 60) return `in ${Math.ceil(seconds)} s`;
  if (seconds < 3600) return `in ${Math.round(seconds / 60)} m`;
  if (seconds < 86400) return `in ${Math.round(seconds / 3600)} h`;
  return `in ${Math.round(seconds / 86400)} d`;
}

/** With the zone of whoever looks. */
export function absolute(then: string | Date): string {
  return written(moment, then);
}

/** The time of day of a line of output. */
export function clock(then: string): string {
  return written(dayTime, then);
}

// Made once: making one takes longer than all else that a row of a table does.
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const dayTime = new Intl.DateTimeFormat(undefined, { timeStyle: "medium", hourCycle: "h23" });

function written(format: Intl.DateTimeFormat, then: string | Date): string {
  const date = new Date(then);
  return Number.isNaN(date.getTime()) ? String(date) : format.format(date);
}

/** `87 %`; complete only where it is. */
export function percent(share: number): string {
  const whole = Math.round(share * 100);
  return `${whole >= 100 && share < 1 ? 99 : Math.min(100, Math.max(0, whole))} %`;
}
