import { useEffect } from "react";

/** A timer takes no more; beyond it nobody waits. */
const MAX_WAIT_MS = 86_400_000;

/**
 * Asked for once more when the master said that it will be another: silence begins to mean something, and no change tells
 * of it. `asOf`: when it said so.
 */
export function useAgainIn(seconds: number | null | undefined, asOf: number, ask: () => unknown): void {
  useEffect(() => {
    if (seconds === null || seconds === undefined || seconds <= 0) return;
    const timer = setTimeout(() => void ask(), Math.min(MAX_WAIT_MS, asOf - Date.now() + seconds * 1000 + 1000));
    return () => clearTimeout(timer);
  }, [seconds, asOf, ask]);
}
