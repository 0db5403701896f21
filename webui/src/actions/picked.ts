/** Rows of a table that are selected by number: one by one, or a range, also of rows that were never in view. */

import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import type { Query } from "../services/live";
import type { Selecting } from "../ui/Grid";
import { rowToReturnTo } from "../ui/returning";

interface Numbered {
  id: number;
}

interface Windows<R> {
  windowOf: (offset: number) => Query<{ rows: R[]; total: number }>;
  size: number;
  total: number;
  rowAt: (index: number) => R | undefined;
}

/** What one may select at most: more than that is no choice. */
const MAX_PICKED = 1000;

/** Who goes to compare what is selected and comes back has it selected still. */
let kept: { of: string; picked: ReadonlySet<number> } | undefined;

/** `of`: of which question they are; of another one none are selected. */
export function usePicked<R extends Numbered>(noun: string, { windowOf, size, total, rowAt }: Windows<R>, of = "") {
  const client = useQueryClient();
  const [picked, pick] = useState<ReadonlySet<number>>(() =>
    rowToReturnTo() !== undefined && kept?.of === of ? kept.picked : new Set(),
  );
  kept = { of, picked };
  const [known, setKnown] = useState(of);
  if (of !== known) {
    setKnown(of);
    pick(new Set());
  }
  const range = useRef<{ from: number; before: ReadonlySet<number> } | null>(null);

  async function between(first: number, last: number): Promise<number[]> {
    const ids: number[] = [];
    let rows: R[] = [];
    let offset = -1;
    for (let index = first; index <= Math.min(last, first + MAX_PICKED - 1); index++) {
      const start = Math.floor(index / size) * size;
      const shown = rowAt(index);
      if (!shown && start !== offset) {
        ({ rows } = await client.fetchQuery(windowOf(start)));
        offset = start;
      }
      const row = shown ?? rows[index - start];
      if (row) ids.push(row.id);
    }
    return ids;
  }

  const selecting: Selecting<R> = {
    has: (row) => picked.has(row.id),
    state: picked.size === 0 ? "none" : picked.size >= total ? "all" : "some",
    nameOf: (row) => `${noun} ${row.id}`,
    toggle: (row) => {
      range.current = null;
      const now = new Set(picked);
      if (!now.delete(row.id)) now.add(row.id);
      pick(now);
    },
    range: (from, to) => {
      if (range.current?.from !== from) range.current = { from, before: picked };
      const now = range.current;
      void between(Math.min(from, to), Math.max(from, to)).then((ids) => {
        if (range.current === now) pick(new Set([...now.before, ...ids]));
      });
    },
    all: () => {
      range.current = null;
      void between(0, total - 1).then((ids) => pick(new Set(ids)));
    },
    none: () => {
      range.current = null;
      pick(new Set());
    },
    first: (count) => {
      range.current = null;
      void between(0, Math.min(count, total) - 1).then((ids) => pick(new Set(ids)));
    },
  };
  return { selecting, picked };
}
