/** How a workspace or a project stands: open, archived, or on its way out. */

import { TONES } from "../../ui/State";

interface Place {
  archived: boolean;
  state: string;
  errorMessage?: string;
}

export function Standing({ of }: { of: Place }) {
  if (of.state.endsWith("DELETING")) {
    return (
      <span className={TONES.wait}>
        <span aria-hidden="true">◌ </span>Deleting
      </span>
    );
  }
  if (of.state.endsWith("DELETE_FAILED")) {
    return (
      <span className={TONES.bad} title={of.errorMessage}>
        <span aria-hidden="true">✕ </span>Not deleted: {of.errorMessage || "no reason was given"}
      </span>
    );
  }
  return of.archived ? (
    <span className={TONES.off}>
      <span aria-hidden="true">⊘ </span>Archived
    </span>
  ) : (
    <span>Open</span>
  );
}
