/** The time, for what is said of it: it goes on while the tab is visible, and is the same for all who ask. */

import { useSyncExternalStore } from "react";

const watchers = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  timer ??= setInterval(tick, 1000);
  return () => {
    watchers.delete(watcher);
    if (watchers.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

function tick(): void {
  if (document.visibilityState !== "visible") return;
  now = Date.now();
  for (const watcher of watchers) watcher();
}

/** Milliseconds since 1970, in steps of `everyMs`; what is not drawn anew for it costs nothing. */
export function useNow(everyMs: number): number {
  return useSyncExternalStore(watch, () => Math.floor(now / everyMs) * everyMs);
}

/** A time that does not go on. */
function still(): () => void {
  return () => {};
}

/** The same, for what goes on only where `runs`. */
export function useNowIf(runs: boolean, everyMs: number): number {
  return useSyncExternalStore(runs ? watch : still, () => (runs ? Math.floor(now / everyMs) * everyMs : 0));
}
