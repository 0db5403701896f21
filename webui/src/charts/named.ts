/** Which metrics are looked for: by a part of their name, or by a pattern. Pure. */

import { compiled } from "./pattern";

/** Whether a name is meant; undefined: that is no pattern. */
export function named(text: string, isPattern: boolean): ((name: string) => boolean) | undefined {
  if (isPattern) return compiled(text);
  const part = text.toLowerCase();
  return (name) => name.toLowerCase().includes(part);
}
