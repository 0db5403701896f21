/** What lies over a page: one dialog at a time, over it the login, and what was just done, with the way back. */

import { Component, type ReactNode, Suspense, useSyncExternalStore } from "react";
import { flushSync } from "react-dom";

type Shown = { dialog: ((close: () => void) => ReactNode) | null; toasts: readonly Toast[]; loggedOut: boolean };

/** Something that was done, or was not. */
export interface Toast {
  id: number;
  text: string;
  /** What was refused, each with its reason. */
  failures?: readonly Failure[];
  undo?: () => void;
}

export interface Failure {
  id: string;
  reason: string;
}

let shown: Shown = { dialog: null, toasts: [], loggedOut: false };
let numbers = 0;
const listeners = new Set<() => void>();
const MAX_TOASTS = 4;

function show(change: Partial<Shown>): void {
  shown = { ...shown, ...change };
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useOverlays(): Shown {
  return useSyncExternalStore(subscribe, () => shown);
}

/** Where the focus was before the dialog. */
let opener: HTMLElement | null = null;

/** Opens a dialog. The focus returns to what has it now, or to what the menu that has it hangs on. */
export function openDialog(dialog: (close: () => void) => ReactNode): void {
  const active = document.activeElement;
  const menu = active?.closest("[role=menu]")?.getAttribute("aria-labelledby");
  if (!shown.dialog) opener = menu ? document.getElementById(menu) : active instanceof HTMLElement ? active : null;
  show({ dialog });
}

/** Closes it at once: what comes next finds the focus where it was. */
export function closeDialog(): void {
  flushSync(() => show({ dialog: null }));
  focusAgain(opener);
}

/** Gives the focus back to `place`, or to what is nearest to it. */
export function focusAgain(place: HTMLElement | null): void {
  if (place?.isConnected && place !== document.body) place.focus();
  if (place && document.activeElement === place && place !== document.body) return;
  const near = document.querySelector<HTMLElement>("#main [role=grid]") ?? document.getElementById("main");
  near?.focus();
}

/** A session has ended while somebody types: they log in over the page. */
export function askToLogIn(): void {
  show({ loggedOut: true });
}

export function isLoggedOut(): boolean {
  return shown.loggedOut;
}

export function loggedInAgain(): void {
  show({ loggedOut: false });
}

/** Says what was done. Of the newest, what can be undone is undone by a key, too. */
export function say(toast: Omit<Toast, "id">): number {
  const id = ++numbers;
  show({ toasts: [...shown.toasts.slice(1 - MAX_TOASTS), { ...toast, id }] });
  return id;
}

export function unsay(id: number): void {
  show({ toasts: shown.toasts.filter((toast) => toast.id !== id) });
}

export function undoNewest(): void {
  const newest = [...shown.toasts].reverse().find((toast) => toast.undo);
  if (!newest) return;
  unsay(newest.id);
  newest.undo?.();
}

export function Dialogs() {
  const { dialog } = useOverlays();
  return (
    <Held dialog={dialog}>
      <Suspense>{dialog?.(closeDialog)}</Suspense>
    </Held>
  );
}

/** A dialog that cannot be shown, as one whose code is gone, is said to be so, and takes nothing of the page with it. */
class Held extends Component<{ dialog: Shown["dialog"]; children: ReactNode }, { failed: Shown["dialog"] }> {
  override state: { failed: Shown["dialog"] } = { failed: null };

  static getDerivedStateFromError() {
    return { failed: shown.dialog };
  }

  override componentDidCatch(error: unknown): void {
    show({ dialog: null });
    focusAgain(opener);
    say({
      text: "This could not be opened",
      failures: [{ id: "", reason: error instanceof Error ? error.message : String(error) }],
    });
  }

  override render(): ReactNode {
    return this.props.dialog && this.props.dialog === this.state.failed ? null : this.props.children;
  }
}
