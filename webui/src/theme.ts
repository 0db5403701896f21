/** Light, dark, or as the system has it. The snippet in index.html sets it before anything is drawn. */

import { useSyncExternalStore } from "react";

export type Theme = "light" | "dark" | "system";
const KEY = "tenax.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

export function chosenTheme(): Theme {
  try {
    const stored = localStorage.getItem(KEY);
    return stored === "light" || stored === "dark" ? stored : "system";
  } catch {
    return "system";
  }
}

export function chooseTheme(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Nowhere to keep it: it holds for this page.
  }
  apply(theme);
}

function apply(theme: Theme): void {
  const dark = theme === "dark" || (theme === "system" && system.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  for (const listener of listeners) listener();
}

system.addEventListener("change", () => apply(chosenTheme()));
// Another tab chose.
window.addEventListener("storage", (event) => event.key === KEY && apply(chosenTheme()));

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** What is shown now: for what is drawn on a canvas. */
export function useShownTheme(): "light" | "dark" {
  return useSyncExternalStore(subscribe, () => (document.documentElement.dataset.theme === "dark" ? "dark" : "light"));
}

export function useChosenTheme(): Theme {
  return useSyncExternalStore(subscribe, chosenTheme);
}
