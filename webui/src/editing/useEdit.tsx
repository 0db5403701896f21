/**
 * An edit of something that somebody else may edit, too. What they have changed meanwhile is said when one saves; what one
 * has typed stays, and nothing is saved before one has chosen.
 */

import { useState } from "react";
import { Refused } from "../services/client";
import { differing, merged } from "./merge";
import { Overtaken } from "./Overtaken";

/** The master's answer to a change that does not find what it expects. */
const OVERTAKEN = 412;
/** Somebody who saves without an end is not waited for. */
const MAX_TRIES = 3;

export interface Change<N, T> {
  /** As it was read. */
  of: N;
  former: T;
  values: T;
  /** Never empty. */
  changed: (keyof T & string)[];
}

/** `valuesOf`: what is edited of it. `read`: as it is now. `labels`: what each value is called. */
export function useEdit<N, T extends object>(edited: {
  of: N;
  valuesOf: (of: N) => T;
  read: () => Promise<N>;
  labels: Record<keyof T & string, string>;
}) {
  const { valuesOf, read, labels } = edited;
  const [of, setOf] = useState(edited.of);
  const [values, setValues] = useState(() => valuesOf(edited.of));
  const [contested, setContested] = useState<(keyof T & string)[]>([]);
  const former = valuesOf(of);
  const set = (change: Partial<T>) => setValues((now) => ({ ...now, ...change }));
  const decide = (name: keyof T & string, theirs: boolean) => {
    setContested(contested.filter((each) => each !== name));
    if (theirs) set({ [name]: former[name] } as unknown as Partial<T>);
  };
  /** Begins anew with what is there. */
  const begin = (now: N) => {
    setOf(() => now);
    setValues(valuesOf(now));
    setContested([]);
  };
  /** `send` expects what `of` says. Raises what it was refused with, and Error where one has to choose first. */
  const save = async (send: (change: Change<N, T>) => Promise<void>) => {
    if (contested.length > 0) throw new Error("Choose above what to keep, then save.");
    let mine: Change<N, T> = { of, former, values, changed: differing(former, values) };
    for (let tries = 1; mine.changed.length > 0; tries += 1) {
      try {
        return await send(mine);
      } catch (error) {
        if (!(error instanceof Refused && error.status === OVERTAKEN) || tries === MAX_TRIES) throw error;
      }
      const now = await read();
      const theirs = valuesOf(now);
      const both = merged(mine.former, mine.values, theirs);
      setOf(() => now);
      setValues(both.values);
      setContested(both.contested);
      if (both.contested.length > 0) throw new Error("It was not saved: choose above what to keep, then save.");
      mine = { of: now, former: theirs, values: both.values, changed: differing(theirs, both.values) };
    }
  };
  const overtaken = contested.length > 0 && (
    <Overtaken
      of={contested.map((name) => ({ name, label: labels[name], theirs: former[name] }))}
      decide={(name, theirs) => decide(name as keyof T & string, theirs)}
    />
  );
  return { of, values, set, changed: differing(former, values), former, save, begin, overtaken };
}
