/** The windows of a long list that are in view, each a query of its own: what nobody looks at is not asked for. */

import { type QueryKey, useQueries } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import { LIVE, type Query } from "../services/live";

interface Found<R> {
  rows: R[];
  total: number;
}

/** `windowOf(offset)` is the query of one window of `size` rows; its key ends in offset and size. */
export function useWindows<R>(windowOf: (offset: number) => Query<Found<R>>, size: number) {
  const [view, setView] = useState({ first: 0, last: 0 });
  const onView = useCallback((first: number, last: number) => {
    setView((former) => (former.first === first && former.last === last ? former : { first, last }));
  }, []);
  const offsets = useMemo(() => {
    const made: number[] = [];
    for (let at = Math.floor(view.first / size); at <= Math.floor(view.last / size); at++) made.push(at * size);
    return made;
  }, [view, size]);
  const queries = useQueries({
    queries: offsets.map((offset) => ({
      ...windowOf(offset),
      ...LIVE,
      // The same place of the list that was asked for before: never rows of another place.
      placeholderData: (data: Found<R> | undefined, former?: { queryKey: QueryKey }) =>
        former?.queryKey.at(-2) === offset ? data : undefined,
    })),
  });
  const rows = new Map<number, R>();
  queries.forEach((query, place) => {
    query.data?.rows.forEach((row, at) => {
      rows.set((offsets[place] ?? 0) + at, row);
    });
  });
  // A window that has not come says nothing of how many there are: what was known before holds.
  const total = queries.find((query) => query.data)?.data?.total;
  const [known, setKnown] = useState(total);
  if (total !== undefined && total !== known) setKnown(total);
  return {
    onView,
    rowAt: (index: number) => rows.get(index),
    loaded: () => [...rows.values()],
    total: total ?? known,
    error: queries.find((query) => query.error)?.error,
    stale: queries.some((query) => query.isPlaceholderData),
    retry: () => queries.forEach((query) => void query.refetch()),
  };
}
