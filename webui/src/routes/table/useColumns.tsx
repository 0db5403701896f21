/** The columns of one table: those of its address, or those that its reader chose, or the usual ones. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useRef, useState } from "react";
import { bounded, columnsQuery, moved, type Placed, placedOf, written } from "../../services/columns";
import type { Experiment } from "../../services/experiments";
import { keepColumns, keptColumns, type NamedView, settingsQuery, viewsOf } from "../../services/settings";
import type { Arranging, Column } from "../../ui/Grid";
import { openDialog, say } from "../../ui/overlays";
import { ColumnsDialog } from "./ColumnsDialog";
import { choicesOf, DEFAULT_COLUMNS, drawn } from "./columns";

export interface Columns {
  placed: Placed[];
  drawn: Column<Experiment>[];
  arranging: Arranging;
  views: NamedView[];
  /** What the reader chose has come. */
  ready: boolean;
  projectId?: number;
  change: (placed: Placed[]) => void;
  reset: () => Placed[];
}

/** `toAddress`: where the address names columns, they are changed there. */
export function useColumns(
  projectId: number | undefined,
  address: string[] | undefined,
  toAddress: (cols: string[] | undefined) => void,
): Columns {
  const client = useQueryClient();
  const settings = useQuery(settingsQuery);
  const kept = settings.data ?? {};
  const named = useMemo(() => (address ? placedOf(address) : []), [address]);
  /** While an edge is dragged. */
  const [dragged, setDragged] = useState<Placed[] | null>(null);
  const placed = dragged ?? (named.length > 0 ? named : (keptColumns(kept, projectId) ?? DEFAULT_COLUMNS));
  const change = (next: Placed[] | undefined) => {
    setDragged(null);
    if (named.length > 0) toAddress(next?.map(written));
    else
      keepColumns(client, projectId, next).catch((error) =>
        say({ text: `The columns are not kept: ${error instanceof Error ? error.message : error}` }),
      );
  };
  const key = JSON.stringify(placed);
  // Rows are drawn again only where columns differ.
  const columns = useMemo(() => drawn(placed), [key]);
  const latest = useRef({ placed, change });
  latest.current = { placed, change };
  const arranging: Arranging = {
    resize: (id, width, done) => {
      const next = placed.map((each) => (each.id === id ? { ...each, width: bounded(width) } : each));
      if (done) change(next);
      else setDragged(next);
    },
    move: (id, to) => change(moved(placed, id, to)),
  };
  return {
    placed,
    drawn: columns,
    arranging,
    views: viewsOf(kept, projectId),
    ready: !settings.isPending,
    projectId,
    change: (next) => latest.current.change(next),
    reset: () => {
      latest.current.change(address ? DEFAULT_COLUMNS : undefined);
      return DEFAULT_COLUMNS;
    },
  };
}

export function chooseColumns(columns: Columns): void {
  openDialog((close) => <Choosing columns={columns} onClose={close} />);
}

function Choosing({ columns, onClose }: { columns: Columns; onClose: () => void }) {
  const catalogue = useQuery(columnsQuery(columns.projectId)).data ?? [];
  return (
    <ColumnsDialog
      choices={choicesOf(catalogue)}
      placed={columns.placed}
      onChange={columns.change}
      onReset={columns.reset}
      onClose={onClose}
    />
  );
}
