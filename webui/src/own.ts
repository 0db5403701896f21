/** What stands under a name in an object: names are anybody's, and `constructor` is one that every object has by itself. Pure. */

export function own<T>(of: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(of, name) ? of[name] : undefined;
}
