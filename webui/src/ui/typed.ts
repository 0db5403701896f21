/** What somebody is typing and has not saved is marked where it stands: nothing that happens beside it takes it away. */

import type { FormEvent } from "react";

/** For `onInput` of what fields stand in. */
export function markTyped(event: FormEvent<HTMLElement>): void {
  event.currentTarget.dataset.typed = "";
}

/** For what knows itself whether its text has taken effect. */
export function typedMark(is: boolean): "" | undefined {
  return is ? "" : undefined;
}

/** Once it is saved, or given up. */
export function unmarkTyped(place: HTMLElement | null): void {
  delete place?.dataset.typed;
}

export function isTyped(within: ParentNode = document): boolean {
  return within.querySelector("[data-typed]") !== null;
}
