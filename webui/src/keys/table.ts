/** All keys of the page: the one table from which the handlers, the palette and the list behind `?` come. */

export type Group = "Everywhere" | "Navigation" | "In a table" | "In an output" | "On what is shown or selected";

export interface Key {
  /** Each of them does it: `k`, `Shift+K`, `Mod+k` (Ctrl, on a Mac Cmd), or two after one another: `g h`. */
  keys: readonly string[];
  title: string;
  group: Group;
}

function key(group: Group, title: string, ...keys: string[]): Key {
  return { keys, title, group };
}

export const KEYS = {
  palette: key("Everywhere", "Find a page, an experiment or an action", "Mod+k"),
  help: key("Everywhere", "Show all keys", "?"),
  filter: key("Everywhere", "Go to the filter; Esc or Enter goes back to the table", "/"),
  undo: key("Everywhere", "Undo the last action", "z"),
  leave: key("Everywhere", "Close what is open, or clear the selection", "Escape"),
  home: key("Navigation", "Go to Home", "g h"),
  experiments: key("Navigation", "Go to the experiments", "g e"),
  queue: key("Navigation", "Go to the queue", "g q"),
  cluster: key("Navigation", "Go to the cluster", "g c"),
  create: key("Navigation", "Create an experiment", "g n"),
  models: key("Navigation", "Go to the models", "g m"),
  settings: key("Navigation", "Go to your settings", "g s"),
  tasks: key("Navigation", "Go to the tasks", "g t"),
  workspaces: key("Navigation", "Go to the workspaces", "g w"),
  usage: key("Navigation", "Go to the usage", "g u"),
  masterLog: key("Navigation", "Go to the master's log", "g l"),
  admin: key("Navigation", "Go to the administration", "g a"),
  previous: key("Navigation", "The previous experiment, trial or version", "["),
  next: key("Navigation", "The next experiment, trial or version", "]"),
  rowDown: key("In a table", "Down", "j", "ArrowDown"),
  rowUp: key("In a table", "Up", "k", "ArrowUp"),
  pageDown: key("In a table", "A page down", "PageDown"),
  pageUp: key("In a table", "A page up", "PageUp"),
  first: key("In a table", "To the first row", "Home"),
  last: key("In a table", "To the last row", "End"),
  open: key("In a table", "Open the row", "Enter"),
  select: key("In a table", "Select or deselect the row", "x"),
  slotLeft: key("In a table", "On the cluster page: previous slot", "ArrowLeft"),
  slotRight: key("In a table", "On the cluster page: next slot", "ArrowRight"),
  sooner: key("In a table", "In the queue: move the job ahead of the previous one", "<"),
  later: key("In a table", "In the queue: move the job behind the next one", ">"),
  rangeDown: key("In a table", "Extend the selection down", "Shift+ArrowDown"),
  rangeUp: key("In a table", "Extend the selection up", "Shift+ArrowUp"),
  selectAll: key("In a table", "Select all that match", "Mod+a"),
  follow: key("In an output", "Follow the newest lines", "f"),
  searchOutput: key("In an output", "Search the output", "/"),
  nextHit: key("In an output", "The next hit", "n"),
  previousHit: key("In an output", "The previous hit", "Shift+N"),
  nextError: key("In an output", "The next error", "e"),
  hold: key("On what is shown or selected", "Pause or resume", "p"),
  edit: key("On what is shown or selected", "Edit", "e"),
  move: key("On what is shown or selected", "Move to a project", "m"),
  compare: key("On what is shown or selected", "Compare the selected trials, or the best ones of the experiments", "c"),
  archive: key("On what is shown or selected", "Archive or unarchive", "a"),
  continue: key("On what is shown or selected", "Continue an experiment that has ended", "Shift+C"),
  cancel: key("On what is shown or selected", "Stop: trials save a checkpoint first", "Shift+S"),
  kill: key("On what is shown or selected", "Kill", "Shift+K"),
  delete: key("On what is shown or selected", "Delete", "Shift+D"),
} as const satisfies Record<string, Key>;

/** The first of the keys that do it. */
export function keysOf(name: KeyName): string {
  return KEYS[name].keys[0] ?? "";
}

export type KeyName = keyof typeof KEYS;

const NAMES = Object.keys(KEYS) as KeyName[];
/** As somebody writes them; `Mod` is Ctrl, on a Mac Cmd. */
const IS_MAC = /Mac|iPhone|iPad/.test(navigator.platform);
const WRITTEN: Record<string, string> = {
  Mod: IS_MAC ? "⌘" : "Ctrl",
  ArrowDown: "↓",
  ArrowUp: "↑",
  ArrowLeft: "←",
  ArrowRight: "→",
  Escape: "Esc",
  PageDown: "Page ↓",
  PageUp: "Page ↑",
};

/** What one has to press, key by key: `["Ctrl", "K"]`, `["g", "h"]`. */
export function caps(keys: string): string[] {
  return keys.split(/[ +]/).map((part) => WRITTEN[part] ?? (keys.includes("Mod") ? part.toUpperCase() : part));
}

/** How the table spells a key that was pressed. */
export function spelled(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey" | "shiftKey">): string {
  if (event.altKey || (event.ctrlKey && event.metaKey)) return "";
  const mod = event.ctrlKey || event.metaKey ? "Mod+" : "";
  // A sign such as ? needs Shift on some keyboards and not on others.
  const letter = event.key.length === 1;
  const shift = event.shiftKey && (!letter || /[a-z]/i.test(event.key)) ? "Shift+" : "";
  const name = letter && mod ? event.key.toLowerCase() : event.key;
  return `${mod}${shift}${name}`;
}

/** What a key may do, after `before` (the first of two, or nothing): where an output is shown, what it means there comes
 *  first. `prefix`: it is the first of two. */
export function meaning(pressed: string, before = ""): { names: KeyName[]; prefix: boolean } {
  const whole = before ? `${before} ${pressed}` : pressed;
  const all = NAMES.filter((each) => (KEYS[each].keys as readonly string[]).includes(whole));
  const names = [...all.filter(isOfOutput), ...all.filter((each) => !isOfOutput(each))];
  const prefix = NAMES.some((each) => KEYS[each].keys.some((keys) => keys.startsWith(`${whole} `)));
  return { names, prefix };
}

function isOfOutput(name: KeyName): boolean {
  return KEYS[name].group === "In an output";
}
