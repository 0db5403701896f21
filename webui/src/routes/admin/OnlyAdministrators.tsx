import type { ReactNode } from "react";

/** Why there is nothing to do here. */
export function OnlyAdministrators({ children }: { children: ReactNode }) {
  return <p className="text-dim">Only administrators can {children}: ask one of them.</p>;
}
