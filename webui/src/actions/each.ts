/** The same done to several things, each by itself: what was refused is listed with its reason. */

import { count } from "../format";
import { type Failure, say } from "../ui/overlays";

interface Doing {
  /** `Revoked`. */
  past: string;
  /** `token`, in one and in several. */
  noun: readonly [string, string];
  undo?: (ids: number[]) => void;
  /** What else there is to say of it. */
  also?: string;
}

/** Says what became of each; returns those of which it was done. */
export function reportEach(results: { id: number; error: string }[], { past, noun, undo, also }: Doing): number[] {
  const failures: Failure[] = results
    .filter(({ error }) => error)
    .map(({ id, error }) => ({ id: String(id), reason: error }));
  const well = results.filter(({ error }) => !error).map(({ id }) => id);
  const [one, several] = noun;
  const size = results.length === 1 ? `${one} ${results[0]?.id}` : `${count(results.length)} ${several}`;
  const takeBack = undo && well.length > 0 ? () => undo(well) : undefined;
  const more = also ? `. ${also}` : "";
  if (failures.length === 0) say({ text: `${past} ${size}${more}`, undo: takeBack });
  else
    say({
      text:
        results.length === 1
          ? `${one} ${results[0]?.id}: this was not done${more}`
          : `${past} ${count(well.length)} of ${size}${more}`,
      failures,
      undo: takeBack,
    });
  return well;
}

/** One after another. */
export async function eachOf(ids: number[], act: (id: number) => Promise<void>) {
  const results: { id: number; error: string }[] = [];
  for (const id of ids) {
    try {
      await act(id);
      results.push({ id, error: "" });
    } catch (error) {
      results.push({ id, error: error instanceof Error ? error.message : String(error) });
    }
  }
  return results;
}
