/** What a table lists, experiments or trials: how rows are asked for, and what its own columns hold. */

import type { ReactNode } from "react";
import { own as ownIn } from "../../own";
import type { Detail, Placed } from "../../services/columns";
import type { ExperimentSearch } from "../../services/experiments";
import type { Query } from "../../services/live";

/** A column that every table of a kind has. */
export interface Own<R> {
  title: string;
  width: number;
  align?: "right";
  /** Labels have no order. */
  unsorted?: boolean;
  cell: (row: R) => ReactNode;
  /** As a file has it. */
  value: (row: R) => unknown;
}

export interface Kind<R extends { id: number }> {
  detail: Detail;
  noun: string;
  /** By the names of the master's catalogue. */
  own: Record<string, Own<R>>;
  /** What a table shows until somebody chooses. */
  usual: Placed[];
  query: (search: ExperimentSearch, offset?: number, limit?: number) => Query<{ rows: R[]; total: number }>;
  metric: (row: R, column: string) => unknown;
  hyperparameter: (row: R, column: string) => unknown;
  metadata: (row: R, column: string) => unknown;
}

export function placedAt<R>(own: Record<string, Own<R>>, id: string, pinned = false): Placed {
  return { id, width: ownIn(own, id)?.width ?? 120, pinned };
}
