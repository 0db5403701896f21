/** What a query says of itself: what it is about, and what a change means for it. Pure. */

import type { Change } from "./messages";

/** What a change means for data: others in their place, or that they have to be fetched again; undefined: nothing. */
export type News<T> = { data?: T; refetch?: boolean } | undefined;

export interface Subject<T> {
  /** The topics on which it depends, as the master names them. They may depend on what was fetched. */
  topics: readonly string[] | ((data: T | undefined) => readonly string[]);
  news: (change: Change, data: T) => News<T>;
  /** It is fetched again at most so often. */
  everyMs?: number;
}

export function topicsOf<T>(subject: Subject<T>, data: T | undefined): readonly string[] {
  return typeof subject.topics === "function" ? subject.topics(data) : subject.topics;
}

/** What several changes, in their order, come to. */
export function applied<T>(subject: Subject<T>, changes: readonly Change[], data: T): { data: T; refetch: boolean } {
  let refetch = false;
  let newest = data;
  for (const change of changes) {
    const news = subject.news(change, newest);
    if (news?.data !== undefined) newest = news.data;
    refetch ||= news?.refetch ?? false;
  }
  return { data: newest, refetch };
}

/** The fields of a change that a row has other values of; undefined: none. */
export function differing<R extends object>(row: R, change: Change, names: readonly (keyof R & string)[]) {
  const differ: Partial<R> = {};
  let any = false;
  for (const name of names) {
    if (!(name in change) || isSame(row[name] ?? null, change[name] ?? null)) continue;
    differ[name] = change[name] as R[typeof name];
    any = true;
  }
  return any ? differ : undefined;
}

/** Lists by what is in them. */
function isSame(one: unknown, other: unknown): boolean {
  if (!Array.isArray(one) || !Array.isArray(other)) return one === other;
  return one.length === other.length && one.every((each, place) => each === other[place]);
}
