/** The trial that the mouse or the focus is on: charts, legend and tables of a page show it together. */

import { useSyncExternalStore } from "react";

let hovered: number | undefined;
const listeners = new Set<() => void>();

export function hover(trial: number | undefined): void {
  if (trial === hovered) return;
  hovered = trial;
  for (const listener of listeners) listener();
}

/** What a chart marks by itself: it ends that mark alone, not that of a legend while new points are drawn. */
export function hoverer(): (trial: number | undefined) => void {
  let marked: number | undefined;
  return (trial) => {
    if (trial !== undefined) hover(trial);
    else if (marked !== undefined && marked === hovered) hover(undefined);
    marked = trial;
  };
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useHovered(): number | undefined {
  return useSyncExternalStore(subscribe, () => hovered);
}

/** Whether it is this one: only what changes is drawn again. */
export function useIsHovered(trial: number): boolean {
  return useSyncExternalStore(subscribe, () => hovered === trial);
}

/** For whatever stands for a trial in the document. */
export function hovering(trial: number) {
  return {
    onMouseEnter: () => hover(trial),
    onMouseLeave: () => hover(undefined),
    onFocus: () => hover(trial),
    onBlur: () => hover(undefined),
  };
}
