/** What the live stream says, and what tabs and their shared connection say to each other. */

/** Of one stream, as the master has it. */
export const MAX_TOPICS = 64;
/** So often a tab says that it is there. */
export const PING_MS = 20_000;

/** Something changed: `kind`, `id`, and the fields that lists show, spelled as there. */
export interface Change {
  kind: string;
  id: number | string;
  deleted?: boolean;
  [field: string]: unknown;
}

/** What a stream begins with. */
export interface Hello {
  version: string;
  /** Names the contract that the master keeps: of another one the page may be too old. */
  schema: string;
  cursor: string;
  topics: string[];
  /** Topic -> why it may not be followed. */
  refused: Record<string, string>;
}

/** How the connection to the master stands. */
export type Link =
  /** Nobody follows anything. */
  | { state: "idle" }
  /** On its way for the first time. */
  | { state: "connecting" }
  | { state: "live" }
  /**
   * It broke, or never came about; `heardAt`: when the master was heard last, on this machine's clock; `refused`: the
   * master answers, and gives no stream.
   */
  | { state: "down"; heardAt: number; reason: string; refused: boolean };

export type ToTab =
  | { kind: "link"; link: Link }
  /** Nothing of these is missed from now on; what was fetched before may be older. */
  | { kind: "followed"; topics: string[] }
  | { kind: "changes"; changes: Change[] }
  /** Something of these was missed. */
  | { kind: "reset"; topics: string[] }
  /** These may not be followed (any more). */
  | { kind: "refused"; topics: string[] }
  /** The session has ended. */
  | { kind: "ended"; reason: string }
  /** Which contract the master keeps now. */
  | { kind: "contract"; schema: string };

export type ToHub =
  /** All that this tab follows from now on; nothing while it is hidden. Said again now and then: it is still there. */
  | { kind: "follow"; topics: string[] }
  /** Somebody looks again: try at once what would be tried later. */
  | { kind: "nudge" }
  | { kind: "leave" };
