/** How high the rows of tables are. The browser keeps it so that a table is drawn once; the master keeps it for everywhere else. */

import { useSyncExternalStore } from "react";

/** As in styles.css; from the third on a row has two lines of text. */
const ROW_PX = { short: 28, dense: 32, comfortable: 40, tall: 52 };
export type Density = keyof typeof ROW_PX;
export function isDensity(value: unknown): value is Density {
  return typeof value === "string" && Object.hasOwn(ROW_PX, value);
}

const KEY = "tenax.density";
const listeners = new Set<() => void>();

function stored(): Density {
  try {
    const kept = localStorage.getItem(KEY);
    return isDensity(kept) ? kept : "dense";
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
