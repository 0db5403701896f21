/**
 * One edit made of three states: how it was when somebody began, how they have it, and how somebody else has left it.
 * Pure.
 */

type Name<T> = keyof T & string;

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** What somebody has changed. */
export function differing<T extends object>(former: T, values: T): Name<T>[] {
  return (Object.keys(values) as Name<T>[]).filter((name) => !same(former[name], values[name]));
}

export interface Merged<T> {
  values: T;
  /** What both have changed, each to something else. `values` has mine. */
  contested: Name<T>[];
}

/** Mine where I have changed it, and theirs elsewhere. */
export function merged<T extends object>(former: T, mine: T, theirs: T): Merged<T> {
  const own = differing(former, mine);
  const values = { ...theirs };
  for (const name of own) values[name] = mine[name];
  return {
    values,
    contested: own.filter((name) => !same(theirs[name], former[name]) && !same(theirs[name], mine[name])),
  };
}

/** What a change expects to find: fields of the thing as they were read. Null is what was absent. */
export function expectedOf<N extends object>(of: N, names: readonly (keyof N & string)[]): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, of[name] ?? null]));
}

/** Some of its fields. */
export function part<T extends object>(of: T, names: readonly (keyof T & string)[]): Partial<T> {
  return Object.fromEntries(names.map((name) => [name, of[name]])) as Partial<T>;
}
