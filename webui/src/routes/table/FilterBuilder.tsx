/** Opens what builds a filter by hand; it comes once somebody asks for it. */

import { lazy } from "../../parts";
import { checkFilter } from "../../services/filter";
import { treeOf } from "../../services/filterTree";
import { openDialog, say } from "../../ui/overlays";
import type { Kind } from "./kind";

const BuilderDialog = lazy(() => import("./BuilderDialog"));

/** `query`: what stands in the field; what is built takes its place. */
export function buildFilter<R extends { id: number }>(
  kind: Kind<R>,
  projectId: number | undefined,
  query: string,
  onBuilt: (query: string) => void,
): void {
  const of = { projectId, detail: kind.detail };
  // The master alone reads filters.
  checkFilter(query, undefined, of).then(
    ({ tree, problem }) => {
      if (problem) return say({ text: `The filter cannot be read: ${problem.message}` });
      openDialog((close) => (
        <BuilderDialog kind={kind as never} of={of} first={treeOf(tree)} onBuilt={onBuilt} onClose={close} />
      ));
    },
    (error) => say({ text: error instanceof Error ? error.message : String(error) }),
  );
}
