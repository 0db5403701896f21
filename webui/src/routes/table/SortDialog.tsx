/** By which columns a table is sorted, one after another: without a mouse, too. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { own } from "../../own";
import { columnsQuery } from "../../services/columns";
import { MAX_SORTS, type Sort, sortsOf, writtenSorts } from "../../services/sorts";
import { Button, FIELD } from "../../ui/Button";
import { Dialog, DialogBody } from "../../ui/Dialog";
import { openDialog } from "../../ui/overlays";
import { choicesOf, titleOf } from "./columns";
import type { Kind } from "./kind";

export function chooseSorts<R extends { id: number }>(
  kind: Kind<R>,
  projectId: number | undefined,
  sort: string,
  onSort: (sort: string) => void,
): void {
  openDialog((close) => <SortDialog kind={kind} projectId={projectId} sort={sort} onSort={onSort} onClose={close} />);
}

function SortDialog<R extends { id: number }>(props: {
  kind: Kind<R>;
  projectId?: number;
  sort: string;
  onSort: (sort: string) => void;
  onClose: () => void;
}) {
  const { kind, projectId, onSort, onClose } = props;
  const [sorts, setSorts] = useState(() => sortsOf(props.sort));
  const catalogue = useQuery(columnsQuery(projectId, kind.detail)).data ?? [];
  const change = (next: Sort[]) => {
    if (next.length === 0) return;
    setSorts(next);
    onSort(writtenSorts(next));
  };
  const others = choicesOf(kind, catalogue).filter(
    ({ id }) => !own(kind.own, id)?.unsorted && !id.includes(",") && !sorts.some((each) => each.column === id),
  );
  return (
    <Dialog title="Sort by" onClose={onClose}>
      <DialogBody
        buttons={
          <Button look="primary" onClick={onClose}>
            Done
          </Button>
        }
      >
        <ol aria-label="Columns to sort by, the most important first" className="flex flex-col gap-1">
          {sorts.map((sort, place) => {
            const title = titleOf(kind, sort.column);
            return (
              <li key={sort.column} className="flex min-h-7 items-center gap-1">
                <span className="min-w-0 flex-1 truncate">{title}</span>
                <select
                  aria-label={`Direction of ${title}`}
                  className={FIELD}
                  value={sort.descending ? "falling" : "rising"}
                  onChange={(event) =>
                    change(sorts.with(place, { ...sort, descending: event.target.value === "falling" }))
                  }
                >
                  <option value="falling">largest first</option>
                  <option value="rising">smallest first</option>
                </select>
                <Button
                  aria-label={`${title} earlier`}
                  disabled={place === 0}
                  className="min-w-7 px-1"
                  onClick={() => change(sorts.toSpliced(place, 1).toSpliced(place - 1, 0, sort))}
                >
                  ↑
                </Button>
                <Button
                  aria-label={`Do not sort by ${title}`}
                  disabled={sorts.length === 1}
                  className="min-w-7 px-1"
                  onClick={() => change(sorts.toSpliced(place, 1))}
                >
                  ✕
                </Button>
              </li>
            );
          })}
        </ol>
        <select
          aria-label="Then by"
          className={FIELD}
          value=""
          disabled={sorts.length >= MAX_SORTS}
          onChange={(event) => change([...sorts, { column: event.target.value, descending: true }])}
        >
          <option value="">{sorts.length < MAX_SORTS ? "Then by…" : `At most ${MAX_SORTS} columns`}</option>
          {others.map((choice) => (
            <option key={choice.id} value={choice.id}>
              {choice.title}
            </option>
          ))}
        </select>
        <p className="text-dim text-sm">
          In the table, click a heading to sort by it alone, or Shift-click to add it after the others. Rows without a
          value come last.
        </p>
      </DialogBody>
    </Dialog>
  );
}
