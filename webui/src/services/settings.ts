/** What the master remembers for a person: how the page looks, columns of each table, and views that they named. */

import { type QueryClient, queryOptions } from "@tanstack/react-query";
import type { ListSearch } from "../addresses";
import { chooseDensity, type Density, isDensity } from "../density";
import { chooseTheme, type Theme } from "../theme";
import { answered, api } from "./client";
import { type Detail, type Placed, placedOf, written } from "./columns";

/** By what the rows of a table are. */
const COLUMNS: Record<Detail, string> = { experiments: "experiments/columns", trials: "trials/columns" };
const VIEWS = "experiments/views";
const APPEARANCE = "appearance";

/** By path and key. */
export type Settings = Record<string, string>;

export const settingsQuery = queryOptions({
  queryKey: ["settings"],
  queryFn: async ({ signal }): Promise<Settings> => {
    const { settings } = await answered(api.GET("/api/v1/users/setting", { signal }));
    return Object.fromEntries(settings.map((each) => [`${each.storagePath}\n${each.key}`, each.value ?? ""]));
  },
  staleTime: 30_000,
});

/** A filter, an order and columns under a name. */
export interface NamedView {
  id: string;
  name: string;
  search: ListSearch;
}

/** Experiments of all projects are a table, too. */
function tableOf(projectId: number | undefined): string {
  return projectId === undefined ? "all" : String(projectId);
}

export function read(text: string | undefined): unknown {
  try {
    return text ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

/** The columns that somebody chose for a table. */
export function keptColumns(settings: Settings, projectId: number | undefined, detail: Detail): Placed[] | undefined {
  const kept = read(settings[`${COLUMNS[detail]}\n${tableOf(projectId)}`]);
  const placed = Array.isArray(kept) ? placedOf(kept) : [];
  return placed.length > 0 ? placed : undefined;
}

export function viewsOf(settings: Settings, projectId: number | undefined): NamedView[] {
  const prefix = `${VIEWS}/${tableOf(projectId)}\n`;
  const views: NamedView[] = [];
  for (const [place, text] of Object.entries(settings)) {
    if (!place.startsWith(prefix)) continue;
    const kept = read(text) as Partial<NamedView> | undefined;
    if (typeof kept?.name !== "string" || kept.search === null || typeof kept.search !== "object") continue;
    views.push({ id: place.slice(prefix.length), name: kept.name, search: kept.search });
  }
  return views.sort((a, b) => a.name.localeCompare(b.name));
}

/** Shows it at once, and keeps it on the master. Raises what that was refused with. */
export async function keepSetting(client: QueryClient, path: string, key: string, value: string): Promise<void> {
  const { queryKey } = settingsQuery;
  await client.cancelQueries({ queryKey });
  client.setQueryData(queryKey, (former) => ({ ...former, [`${path}\n${key}`]: value }));
  try {
    await answered(api.POST("/api/v1/users/setting", { body: { settings: [{ storagePath: path, key, value }] } }));
  } catch (error) {
    void client.invalidateQueries({ queryKey });
    throw error;
  }
}

export function keepColumns(
  client: QueryClient,
  projectId: number | undefined,
  detail: Detail,
  placed: Placed[] | undefined,
) {
  return keepSetting(client, COLUMNS[detail], tableOf(projectId), placed ? JSON.stringify(placed.map(written)) : "");
}

export function keepView(client: QueryClient, projectId: number | undefined, view: NamedView): Promise<void> {
  const { id, name, search } = view;
  return keepSetting(client, `${VIEWS}/${tableOf(projectId)}`, id, JSON.stringify({ name, search }));
}

/** A setting without a value is none. */
export function dropView(client: QueryClient, projectId: number | undefined, id: string): Promise<void> {
  return keepSetting(client, `${VIEWS}/${tableOf(projectId)}`, id, "");
}

/** How the page looks for a person, on every machine; undefined: they chose nothing yet. */
export function keptAppearance(settings: Settings): { theme?: Theme; density?: Density } {
  const theme = settings[`${APPEARANCE}\ntheme`];
  const density = settings[`${APPEARANCE}\ndensity`];
  return {
    theme: theme === "light" || theme === "dark" || theme === "system" ? theme : undefined,
    density: isDensity(density) ? density : undefined,
  };
}

/** Shows it at once, here and in all tabs of this browser, and keeps it on the master. */
export function keepTheme(client: QueryClient, theme: Theme): Promise<void> {
  chooseTheme(theme);
  return keepSetting(client, APPEARANCE, "theme", theme);
}

export function keepDensity(client: QueryClient, density: Density): Promise<void> {
  chooseDensity(density);
  return keepSetting(client, APPEARANCE, "density", density);
}
