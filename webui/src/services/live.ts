/**
 * How what is shown stays current. Each query says on which topics it depends and what a change means for it; the
 * master's stream of changes, shared by all tabs, does the rest (`stream/current.ts`). There is no timer for any of it.
 */

import {
  hashKey,
  keepPreviousData,
  type QueryClient,
  type QueryKey,
  type UseQueryResult,
  useQuery,
} from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { MASTER } from "./client";
import { connect } from "./stream/connection";
import { Current, type Live } from "./stream/current";
import type { Link } from "./stream/messages";
import type { Subject } from "./stream/subject";

/** Something of the master's, how it is asked for, what it is about and what a change means for it. */
interface Asked<T> extends Subject<T> {
  queryKey: readonly unknown[];
  queryFn: (context: { signal: AbortSignal }) => Promise<T>;
  enabled?: boolean;
}

/** As TanStack Query takes it. */
export interface Query<T> {
  queryKey: readonly unknown[];
  queryFn: (context: { signal: AbortSignal }) => Promise<T>;
  enabled?: boolean;
  meta?: { live?: Live };
}

let current: Current | undefined;

export function query<T>({ queryKey, queryFn, enabled, ...subject }: Asked<T>): Query<T> {
  return {
    queryKey,
    queryFn: ({ signal }) =>
      current ? current.fetched(queryKey, signal, () => queryFn({ signal })) : queryFn({ signal }),
    ...(enabled === undefined ? {} : { enabled }),
    meta: { live: { subject: subject as unknown as Subject<unknown> } },
  };
}

/** What holds for each query that is kept current. */
export const LIVE = {
  staleTime: (shown: Parameters<Current["holds"]>[0]) => current?.holds(shown) ?? 0,
  refetchOnWindowFocus: false,
  refetchOnReconnect: false,
};

/** Fetch what is about to be shown, and follow it. */
export function ahead<T>(client: QueryClient, asked: Query<T>): void {
  current?.expect(hashKey(asked.queryKey));
  void client.prefetchQuery({ ...asked, ...(LIVE as object) });
}

/**
 * Delete something. What shows it is told of that before it is left, and asks for nothing of it any more.
 *
 * `shown`: the beginnings of the keys of what is of it alone. Raises whatever it was refused with.
 */
export function removing<T>(shown: readonly QueryKey[], ask: () => Promise<T>): Promise<T> {
  return current ? current.remove(shown, ask) : ask();
}

/**
 * A query that is kept current for as long as it is shown; `settled` says that it can change no more, and need not be
 * asked for where there is no stream. Former data stay while new ones are on their way.
 */
export function useLive<T>(asked: Query<T>, settled?: (data: T) => boolean): UseQueryResult<T> {
  const live = asked.meta?.live;
  return useQuery<T>({
    placeholderData: keepPreviousData as never,
    ...asked,
    ...(LIVE as object),
    meta: { live: live && settled ? { ...live, settled: settled as (data: unknown) => boolean } : live },
  });
}

/** How the connection stands, and whether the master keeps another contract than when this page came. */
export interface Standing {
  link: Link;
  outdated: boolean;
}

let standing: Standing = { link: { state: "idle" }, outdated: false };
const watchers = new Set<() => void>();

function stand(changed: Partial<Standing>): void {
  standing = { ...standing, ...changed };
  const { link } = standing;
  document.documentElement.dataset.link = link.state === "down" && link.refused ? "refused" : link.state;
  for (const watcher of watchers) watcher();
}

/** Keep the queries of a client current from now on; `ended`: the session may have. */
export function keepCurrent(client: QueryClient, ended: () => void): void {
  let first = "";
  current = new Current(client, {
    link: (link) => stand({ link }),
    contract: (schema) => {
      first ||= schema;
      if (schema !== first) stand({ outdated: true });
    },
    current: (is) => {
      document.documentElement.dataset.current = String(is);
    },
    ended,
  });
  current.start((receive) => connect(MASTER, receive));
}

export function useStanding(): Standing {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => standing,
  );
}
