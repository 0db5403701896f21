/** The experiment before or after one, in the list from which it was opened; by number where there was none. */

import type { QueryClient } from "@tanstack/react-query";
import { type ExperimentSearch, experimentsQuery, type Found, WINDOW } from "../services/experiments";

let remembered: ExperimentSearch = { sort: "-id" };

/** The list that is looked at. */
export function rememberList(search: ExperimentSearch): void {
  remembered = search;
}

/** Its number, or undefined at the end of the list. */
export async function beside(client: QueryClient, id: number, step: 1 | -1): Promise<number | undefined> {
  const here = placeOf(client, id);
  if (here === undefined) {
    // Lists begin with the greatest number.
    const search = step > 0 ? { before: id, sort: "-id" } : { after: id, sort: "id" };
    return (await client.fetchQuery(experimentsQuery(search, 0, 1))).rows[0]?.id;
  }
  const next = here + step;
  if (next < 0) return undefined;
  const offset = Math.floor(next / WINDOW) * WINDOW;
  const { rows } = await client.fetchQuery({ ...experimentsQuery(remembered, offset, WINDOW), staleTime: 60_000 });
  return rows[next - offset]?.id;
}

function placeOf(client: QueryClient, id: number): number | undefined {
  for (const [key, data] of client.getQueriesData<Found>({ queryKey: ["experiments", remembered] })) {
    const at = data?.rows.findIndex((row) => row.id === id) ?? -1;
    if (at >= 0) return (key[2] as number) + at;
  }
  return undefined;
}
