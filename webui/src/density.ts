/** How high the rows of tables are. The browser keeps it so that a table is drawn once; the master keeps it for everywhere else. */

import { useSyncExternalStore } from "react";

export type Density = "dense" | "comfortable";
/** As in styles.css. */
const ROW_PX: Record<Density, number> = { dense: 32, comfortable: 40 };
const KEY = "tenax.density";
const listeners = new Set<() => void>();

function stored(): Density {
  try {
    return localStorage.getItem(KEY) === "comfortable" ? "comfortable" : "dense";
  } catch {
    return "dense";
  }
}

let chosen = stored();
document.documentElement.dataset.density = chosen;

export function chosenDensity(): Density {
  return chosen;
}

export function chooseDensity(density: Density): void {
  chosen = density;
  try {
    localStorage.setItem(KEY, density);
  } catch {
    // Nowhere to keep it: it holds for this page.
  }
  document.documentElement.dataset.density = density;
  for (const listener of listeners) listener();
}

// Another tab chose.
window.addEventListener("storage", (event) => event.key === KEY && stored() !== chosen && chooseDensity(stored()));

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useDensity(): Density {
  return useSyncExternalStore(subscribe, chosenDensity);
}

/** The height of a row of a table. */
export function useRowPx(): number {
  return ROW_PX[useDensity()];
}
