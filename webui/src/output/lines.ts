/** The lines that are looked at, fetched in windows as they come into view; and which lines match, as they grow. */

import { useEffect, useRef, useState } from "react";
import { hits, type LineFilter, type OutputLine, type Part, part, WINDOW, type Writer } from "../services/output";
import { Ranges } from "./ranges";

/** Lines that are kept. */
const KEPT = 20_000;

/** Lines by number; `ensure` asks for those that are not here. `newest` is what came by itself. */
export function useLines(of: Writer, newest: Part | undefined) {
  const lines = useRef(new Map<number, OutputLine>());
  const asked = useRef(new Set<number>());
  const [, shown] = useState(0);
  for (const line of newest?.lines ?? []) lines.current.set(line.number, line);
  const fetchPart = (numbers: number[]) => {
    for (const number of numbers) asked.current.add(number);
    const [first = 0, last = first] = [numbers[0], numbers.at(-1)];
    // Neighbours are named by the first of them.
    const place = last - first === numbers.length - 1 ? { offset: first } : { numbers };
    void part(of, place, numbers.length)
      .then((loaded) => {
        for (const line of loaded.lines) lines.current.set(line.number, line);
        forgetOldest(lines.current);
      })
      .catch(() => {})
      .finally(() => {
        for (const number of numbers) asked.current.delete(number);
        shown((count) => count + 1);
      });
  };
  return {
    get: (number: number) => lines.current.get(number),
    ensure: (numbers: number[]) => {
      const missing = numbers.filter((number) => !lines.current.has(number) && !asked.current.has(number));
      for (let at = 0; at < missing.length; at += WINDOW) fetchPart(missing.slice(at, at + WINDOW));
    },
  };
}

/** Those that came first are far away by now. */
function forgetOldest(lines: Map<number, OutputLine>): void {
  for (const number of lines.keys()) {
    if (lines.size <= KEPT) return;
    lines.delete(number);
  }
}

interface Search {
  key: string;
  ranges: Ranges;
  next: number;
  done: boolean;
  error?: unknown;
}

/** Which lines match; undefined where nothing is looked for. It goes on when there are more lines. */
export function useHits(of: Writer, filter: LineFilter | undefined, total: number): Search | undefined {
  const key = filter ? JSON.stringify(filter) : "";
  const [search, setSearch] = useState<Search>({ key: "", ranges: new Ranges(), next: 0, done: false });
  useEffect(() => {
    if (!filter) return;
    const control = new AbortController();
    const known = search.key === key ? search : { key, ranges: new Ranges(), next: 0, done: false };
    const look = async () => {
      let { next } = known;
      while (next < total && !control.signal.aborted) {
        const reply = await hits(of, filter, next, 10_000, control.signal);
        if (control.signal.aborted) return;
        known.ranges.add(reply.first, reply.last);
        next = known.next = Math.max(next + 1, reply.next);
        setSearch({ ...known, next, done: next >= total });
      }
      if (!control.signal.aborted) setSearch({ ...known, next, done: true });
    };
    look().catch((error) => {
      if (!control.signal.aborted) setSearch({ ...known, done: true, error });
    });
    return () => control.abort();
  }, [of, key, total]);
  if (!filter) return undefined;
  return search.key === key ? search : { key, ranges: new Ranges(), next: 0, done: false };
}
