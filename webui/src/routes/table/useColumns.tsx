/** The columns of one table: those of its address, or those that its reader chose, or the usual ones. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useRef, useState } from "react";
import { bounded, columnsQuery, moved, type Placed, placedOf, rangesQuery, written } from "../../services/columns";
import {
  keepColumns,
  keptColumns,
  type NamedView,
  type Settings,
  settingsQuery,
  viewsOf,
} from "../../services/settings";
import type { Arranging, Column } from "../../ui/Grid";
import { openDialog, say } from "../../ui/overlays";
import { ColumnsDialog } from "./ColumnsDialog";
import { choicesOf, drawn } from "./columns";
import type { Kind } from "./kind";

/** Those of an address, or those that were kept, or the usual ones. */
export function placedIn<R extends { id: number }>(
  kind: Kind<R>,
  kept: Settings,
  projectId: number | undefined,
  address: string[] | undefined,
): Placed[] {
  const named = address ? placedOf(address) : [];
  return named.length > 0 ? named : (keptColumns(kept, projectId, kind.detail) ?? kind.usual);
}

export interface Columns<R extends { id: number }> {
  kind: Kind<R>;
  placed: Placed[];
  drawn: Column<R>[];
  arranging: Arranging;
  views: NamedView[];
  /** What the reader chose has come. */
  ready: boolean;
  projectId?: number;
  change: (placed: Placed[]) => void;
  reset: () => Placed[];
}

/** `toAddress`: where the address names columns, they are changed there. */
export function useColumns<R extends { id: number }>(
  kind: Kind<R>,
  projectId: number | undefined,
  address: string[] | undefined,
  toAddress: (cols: string[] | undefined) => void,
): Columns<R> {
  const client = useQueryClient();
  const settings = useQuery(settingsQuery);
  const kept = settings.data ?? {};
  const named = useMemo(() => (address ? placedOf(address) : []), [address]);
  /** While an edge is dragged. */
  const [dragged, setDragged] = useState<Placed[] | null>(null);
  const placed = dragged ?? placedIn(kind, kept, projectId, address);
  const refused = (error: unknown) =>
    say({ text: `That was not saved: ${error instanceof Error ? error.message : error}` });
  const change = (next: Placed[] | undefined) => {
    setDragged(null);
    if (named.length > 0) toAddress(next?.map(written));
    else keepColumns(client, projectId, kind.detail, next).catch(refused);
  };
  // Only for heat maps, of which a project is asked.
  const heated = projectId !== undefined && placed.some((each) => each.heat);
  const ranges = useQuery({ ...rangesQuery(projectId), enabled: heated }).data;
  const key = JSON.stringify(placed);
  // Rows are drawn again only where columns differ.
  const columns = useMemo(() => drawn(kind, placed, ranges), [key, kind, ranges]);
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
    kind,
    placed,
    drawn: columns,
    arranging,
    views: viewsOf(kept, projectId),
    ready: !settings.isPending,
    projectId,
    change: (next) => latest.current.change(next),
    reset: () => {
      latest.current.change(address ? kind.usual : undefined);
      return kind.usual;
    },
  };
}

export function chooseColumns<R extends { id: number }>(columns: Columns<R>): void {
  openDialog((close) => <Choosing columns={columns} onClose={close} />);
}

function Choosing<R extends { id: number }>({ columns, onClose }: { columns: Columns<R>; onClose: () => void }) {
  const { kind, projectId } = columns;
  const catalogue = useQuery(columnsQuery(projectId, kind.detail)).data ?? [];
  return (
    <ColumnsDialog
      kind={kind}
      choices={choicesOf(kind, catalogue)}
      placed={columns.placed}
      mayHeat={projectId !== undefined}
      onChange={columns.change}
      onReset={columns.reset}
      onClose={onClose}
    />
  );
}
