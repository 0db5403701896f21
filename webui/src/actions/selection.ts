/** Which experiments of a list are selected: rows by number, or all that match but some. */

import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { type Experiment, type ExperimentSearch, experimentsQuery, type Found, WINDOW } from "../services/experiments";
import type { Selecting } from "../ui/Grid";
import { rowToReturnTo } from "../ui/returning";
import { type Chosen, rowsOf } from "./perform";

interface Selected {
  all: boolean;
  /** Rows that are selected, or of all those that are not. */
  rows: ReadonlyMap<number, Experiment>;
}

const NOTHING: Selected = { all: false, rows: new Map() };

/** Who goes to compare what is selected and comes back has it selected still. */
let kept: { asked: string; selected: Selected } | undefined;

interface Shown {
  rowAt: (index: number) => Experiment | undefined;
  loaded: () => Experiment[];
}

export function useSelection(search: ExperimentSearch, total: number, shownRows: Shown) {
  const client = useQueryClient();
  const asked = JSON.stringify({ ...search, sort: "", metrics: [] });
  const [selected, select] = useState(() =>
    rowToReturnTo() !== undefined && kept?.asked === asked ? kept.selected : NOTHING,
  );
  kept = { asked, selected };
  // In another order the same are selected; of another question none.
  const [known, setKnown] = useState(asked);
  if (asked !== known) {
    setKnown(asked);
    select(NOTHING);
  }
  const range = useRef<{ from: number; before: Selected } | null>(null);
  const size = selected.all ? Math.max(0, total - selected.rows.size) : selected.rows.size;

  const isIn = (row: Experiment) => selected.rows.has(row.id) !== selected.all;
  const selecting: Selecting<Experiment> = {
    has: isIn,
    state: size === 0 ? "none" : size === total ? "all" : "some",
    nameOf: (row) => `experiment ${row.id}`,
    toggle: (row) => {
      range.current = null;
      const rows = new Map(selected.rows);
      if (!rows.delete(row.id)) rows.set(row.id, row);
      select({ ...selected, rows });
    },
    range: (from, to) => void selectRange(from, to),
    all: () => {
      range.current = null;
      select({ all: true, rows: new Map() });
    },
    none: () => {
      range.current = null;
      select(NOTHING);
    },
    first: (count) => {
      range.current = { from: 0, before: NOTHING };
      void selectRange(0, Math.min(count, total) - 1);
    },
  };

  async function selectRange(from: number, to: number): Promise<void> {
    if (range.current?.from !== from) range.current = { from, before: selected };
    const { before } = range.current;
    const now = range.current;
    const rows = new Map(before.rows);
    for (const row of await rowsBetween(Math.min(from, to), Math.max(from, to))) {
      if (before.all) rows.delete(row.id);
      else rows.set(row.id, row);
    }
    if (range.current === now) select({ all: before.all, rows });
  }

  /** Also those that were never in view. */
  async function rowsBetween(first: number, last: number): Promise<Experiment[]> {
    const rows: Experiment[] = [];
    let window: Found | undefined;
    let offset = -1;
    for (let index = first; index <= last; index++) {
      const here = Math.floor(index / WINDOW) * WINDOW;
      const shown = shownRows.rowAt(index);
      if (!shown && here !== offset) {
        window = await client.fetchQuery(experimentsQuery(search, here, WINDOW));
        offset = here;
      }
      const row = shown ?? window?.rows[index - here];
      if (row) rows.push(row);
    }
    return rows;
  }

  return { selecting, size, chosen: chosenOf() };

  function chosenOf(): Chosen {
    const ids = [...selected.rows.keys()];
    if (!selected.all) {
      const current = new Map(rowsOf(client, ids).map((row) => [row.id, row]));
      return { target: { ids }, known: [...selected.rows.values()].map((row) => current.get(row.id) ?? row) };
    }
    const known = shownRows.loaded().filter((row) => !selected.rows.has(row.id));
    return { target: { search, without: ids, count: size }, known };
  }
}
