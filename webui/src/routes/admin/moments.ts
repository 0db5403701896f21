/** Moments as fields of a browser have them: its own time, to the minute. Pure. */

/** What such a field shows for a moment of the master's. */
export function toField(moment: string | null | undefined): string {
  if (!moment) return "";
  const at = new Date(moment);
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day}T${two(at.getHours())}:${two(at.getMinutes())}`;
}

/** What is told the master; undefined: nothing was chosen. */
export function fromField(value: string): string | undefined {
  const at = new Date(value);
  return value === "" || Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}
