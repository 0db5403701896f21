/** What can be done now: what is on screen registers it, keys and the palette run it. */

import { useEffect, useRef, useSyncExternalStore } from "react";
import { KEYS, type KeyName, meaning, spelled } from "./table";

export interface Command {
  /** Its line in the table of keys, if it has one. */
  name?: KeyName;
  /** What it does here, if that is more than the table says. */
  title?: string;
  /** Keys alone know of it: the palette does not list it. */
  silent?: boolean;
  run: () => void;
}

/** What was registered, the newest last: it comes before older ones of the same name. */
let registered: { commands: Command[] }[] = [];
let listed: readonly Command[] = [];
const listeners = new Set<() => void>();

function changed(): void {
  const taken = new Set<KeyName>();
  const newest: Command[] = [];
  for (const { commands } of [...registered].reverse()) {
    newest.push(...commands.filter((command) => !command.name || !taken.has(command.name)));
    for (const { name } of commands) if (name) taken.add(name);
  }
  listed = newest;
  for (const listener of listeners) listener();
}

/** Registers what can be done while the caller is on screen. */
export function useCommands(commands: Command[]): void {
  const latest = useRef(commands);
  latest.current = commands;
  const known = commands.map((each) => `${each.name}:${each.title}:${each.silent}`).join("\n");
  // What they are called is all that others see of them.
  useEffect(() => {
    const entry = {
      commands: latest.current.map((command, place) => ({ ...command, run: () => latest.current[place]?.run() })),
    };
    registered.push(entry);
    changed();
    return () => {
      registered = registered.filter((each) => each !== entry);
      changed();
    };
  }, [known]);
}

/** All that can be done now. */
export function useListed(): readonly Command[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => listed,
  );
}

export function titleOf(command: Command): string {
  return command.title ?? (command.name ? KEYS[command.name].title : "");
}

const PREFIX_MS = 1500;
const FIELDS = "input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable=true]";

export function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest(FIELDS) !== null;
}

/** A dialog or a menu has the keys while it is open. */
function isCovered(target: EventTarget | null): boolean {
  return (
    document.querySelector("dialog[open]") !== null || (target instanceof Element && !!target.closest("[role=menu]"))
  );
}

let before = "";
let beforeTimer: ReturnType<typeof setTimeout> | undefined;

/** Runs what a key means here. A table takes its own keys before they come this far. */
function onKeyDown(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing || isCovered(event.target)) return;
  const pressed = spelled(event);
  if (isTyping(event.target) && pressed !== "Mod+k") return;
  if (["Shift", "Control", "Meta", "Alt"].includes(event.key)) return;
  clearTimeout(beforeTimer);
  const { names, prefix } = meaning(pressed, before);
  before = prefix && !before ? pressed : "";
  if (before) beforeTimer = setTimeout(forget, PREFIX_MS);
  const command = names.map((name) => listed.find((each) => each.name === name)).find((each) => each !== undefined);
  // Only letters lead into a table from elsewhere: other keys scroll what has the focus.
  if (!command?.name || (KEYS[command.name].group === "In a table" && pressed.length > 1)) return;
  event.preventDefault();
  command.run();
}

function forget(): void {
  before = "";
}

/** Listens for keys while the caller is on screen. */
export function useKeys(): void {
  useEffect(() => {
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, []);
}
