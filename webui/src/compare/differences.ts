/** What trials differ in: every setting by its path with dots, over all of them. Pure. */

export type Leaves = ReadonlyMap<string, string>;

/** Nested settings by their paths; lists are values. */
export function leaves(value: unknown, path = "", into = new Map<string, string>()): Map<string, string> {
  const inner = value && typeof value === "object" && !Array.isArray(value) ? Object.entries(value) : [];
  if (inner.length === 0 && path) into.set(path, typeof value === "string" ? value : JSON.stringify(value));
  for (const [name, child] of inner) leaves(child, path ? `${path}.${name}` : name, into);
  return into;
}

export interface Setting {
  name: string;
  /** One for each trial; undefined: it has none. */
  values: (string | undefined)[];
  differs: boolean;
}

/** All settings, those that differ first, by name. */
export function settings(trials: readonly Leaves[]): Setting[] {
  const names = [...new Set(trials.flatMap((trial) => [...trial.keys()]))].sort();
  const all = names.map((name): Setting => {
    const values = trials.map((trial) => trial.get(name));
    return { name, values, differs: new Set(values).size > 1 };
  });
  return [...all.filter((setting) => setting.differs), ...all.filter((setting) => !setting.differs)];
}
