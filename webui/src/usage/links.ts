/** Where the names of the usage lead: to what made it up, as far as an address can say it. Pure. */

import { quoted } from "../services/filterTree";
import type { UsageBy } from "../services/usage";
import { plus, type Span } from "./sums";

/** The filter of experiments that were there in a time. */
export function duringOf({ from, to }: Span): string {
  return `started<${plus(to, 1)} (ended>=${from} OR NOT has:ended)`;
}

/** What of the filter of experiments says that they are of a name; undefined: it cannot. */
const COLUMNS: Partial<Record<UsageBy, string>> = { user: "owner:", pool: "pool=", label: "label:" };

export function filterOf(by: UsageBy, name: string, span: Span): string | undefined {
  const column = COLUMNS[by];
  return column && name !== "" ? `${column}${quoted(name, by === "user")} ${duringOf(span)}` : undefined;
}
