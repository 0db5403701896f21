/** What can be wrong with machines; apart from what it means, since addresses are read before their pages come. */

export const TROUBLES = [
  "failing",
  "broken",
  "away",
  "disabled",
  "draining",
  "slots",
  "version",
  "foreign",
  "pool",
] as const;
export type Trouble = (typeof TROUBLES)[number];
