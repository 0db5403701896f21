/**
 * A table of any length: an ARIA grid of which only the rows in view exist.
 *
 * Rows are asked for in windows, by what is in view; a row that has not come yet stands as a dash. Its keys are those of
 * the table of keys; letters reach it from anywhere on the page. Headers sort on the server.
 */

import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, memo, type ReactNode, useCallback, useEffect, useId, useRef, useState } from "react";
import { count } from "../format";
import { type Command, useCommands } from "../keys/commands";
import { type KeyName, meaning, spelled } from "../keys/table";

const ROW_PX = 32;
const HEADER_PX = 30;
/** Beyond that browsers draw no element: whoever looks for something narrows the list. */
const MAX_ROWS = 900_000;

export interface Column<R> {
  id: string;
  title: string;
  /** CSS width; `1fr` columns share what is left. */
  width: string;
  align?: "right";
  /** Name for sorting, where the server can. */
  sort?: string;
  cell: (row: R) => ReactNode;
}

/** Which rows are selected, and how that changes. */
export interface Selecting<R> {
  has: (row: R) => boolean;
  state: "all" | "some" | "none";
  /** What a row is called. */
  nameOf: (row: R) => string;
  toggle: (row: R) => void;
  /** The rows between two places, in the place of the last range that began at the first one. */
  range: (from: number, to: number) => void;
  all: () => void;
  none: () => void;
}

interface GridProps<R> {
  label: string;
  columns: Column<R>[];
  total: number;
  /** The row of a place, if it has come. */
  rowAt: (index: number) => R | undefined;
  keyOf: (row: R) => string | number;
  /** The rows that are in view; whoever has the data asks for them. */
  onView: (first: number, last: number) => void;
  onOpen: (row: R) => void;
  /** `name` or `-name`. */
  sort: string;
  onSort: (sort: string) => void;
  /** Pixels below which the table scrolls sideways. */
  minWidth?: number;
  /** Rows shown are of a former question. */
  stale?: boolean;
  className?: string;
  selecting?: Selecting<R>;
}

export function Grid<R>(props: GridProps<R>) {
  const { columns, onView, rowAt, onOpen, selecting } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(0);
  const id = useId();
  const total = Math.min(props.total, MAX_ROWS);
  const rows = useVirtualizer({
    count: total,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    scrollMargin: HEADER_PX,
    scrollPaddingStart: HEADER_PX,
    overscan: 8,
  });
  const items = rows.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items[items.length - 1]?.index ?? 0;
  useEffect(() => onView(first, last), [onView, first, last]);

  const move = useCallback(
    (to: number) => {
      const index = Math.max(0, Math.min(total - 1, to));
      setActive(index);
      rows.scrollToIndex(index, { align: "auto" });
    },
    [rows, total],
  );
  const anchor = useRef(0);
  const go = (to: number) => {
    anchor.current = to;
    move(to);
  };
  const pageRows = () => Math.max(1, Math.floor(((scroller.current?.clientHeight ?? 0) - HEADER_PX) / ROW_PX) - 1);
  const extend = (to: number) => {
    const place = Math.max(0, Math.min(total - 1, to));
    move(place);
    selecting?.range(anchor.current, place);
  };
  const toggle = (index: number, ranging: boolean) => {
    const row = rowAt(index);
    if (!row || !selecting) return;
    setActive(index);
    if (ranging) return selecting.range(anchor.current, index);
    anchor.current = index;
    selecting.toggle(row);
  };
  const steps: Partial<Record<KeyName, () => void>> = {
    rowDown: () => go(active + 1),
    rowUp: () => go(Math.max(0, active - 1)),
    pageDown: () => go(active + pageRows()),
    pageUp: () => go(Math.max(0, active - pageRows())),
    first: () => go(0),
    last: () => go(total - 1),
    open: () => {
      const row = rowAt(active);
      if (row) onOpen(row);
    },
    ...(selecting && {
      select: () => toggle(active, false),
      rangeDown: () => extend(active + 1),
      rangeUp: () => extend(active - 1),
      selectAll: selecting.all,
    }),
  };
  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>) => {
    if (event.target !== scroller.current) return;
    const { name } = meaning(spelled(event));
    const step = name && steps[name];
    if (!step) return;
    event.preventDefault();
    step();
  };
  // From elsewhere on the page, too: letters lead into the table.
  const fromAfar = (["rowDown", "rowUp", "select"] as const).flatMap((name): Command[] => {
    const step = steps[name];
    return step ? [{ name, silent: true, run: () => enter(scroller.current, name !== "select", step) }] : [];
  });
  useCommands(fromAfar);
  const widths = columns.map((column) => column.width);
  const template = (selecting ? ["36px", ...widths] : widths).join(" ");
  const toggled = useRef(toggle);
  toggled.current = toggle;
  const onToggle = useCallback((index: number, ranging: boolean) => toggled.current(index, ranging), []);
  const selectedAt = (index: number) => {
    const row = rowAt(index);
    return selecting !== undefined && row !== undefined && selecting.has(row);
  };
  const nameAt = (index: number) => {
    const row = rowAt(index);
    return row && selecting?.nameOf(row);
  };
  const shown = items.some((item) => item.index === active);
  return (
    <div
      ref={scroller}
      role="grid"
      aria-label={props.label}
      aria-rowcount={props.total + 1}
      aria-colcount={columns.length + (selecting ? 1 : 0)}
      aria-multiselectable={selecting ? true : undefined}
      aria-activedescendant={shown ? `${id}-${active}` : undefined}
      aria-busy={props.stale ?? false}
      tabIndex={0}
      onKeyDown={onKeyDown}
      className={`group relative min-h-40 flex-1 overflow-auto rounded-md border border-line outline-offset-[-2px] ${props.className ?? ""}`}
    >
      <div style={{ minWidth: props.minWidth }} role="presentation">
        <div role="rowgroup" className="sticky top-0 z-10">
          <Header {...props} template={template} />
        </div>
        <div
          role="rowgroup"
          className={`relative ${props.stale ? "opacity-60" : ""}`}
          style={{ height: rows.getTotalSize() }}
        >
          {items.map((item) => (
            <Row
              key={item.key}
              id={`${id}-${item.index}`}
              index={item.index}
              top={item.start - HEADER_PX}
              row={rowAt(item.index)}
              columns={columns as Column<unknown>[]}
              template={template}
              active={item.index === active}
              onActivate={setActive}
              selected={selectedAt(item.index)}
              name={selecting ? nameAt(item.index) : undefined}
              onToggle={onToggle}
            />
          ))}
        </div>
      </div>
      {props.total > MAX_ROWS && (
        <p className="p-2 text-dim">Shown are the first {count(MAX_ROWS)}: narrow the list to see others.</p>
      )}
    </div>
  );
}

/** The first time a letter leads into the table, to where it stands; then on. */
function enter(table: HTMLElement | null, stands: boolean, step: () => void): void {
  if (document.activeElement !== table) {
    table?.focus();
    if (stands) return;
  }
  step();
}

/** The box that selects all or nothing. */
function All<R>({ selecting, total }: { selecting: Selecting<R>; total: number }) {
  const { state, all, none } = selecting;
  return (
    <div role="columnheader" className="flex items-center">
      <label className="flex size-full items-center justify-center">
        <input
          type="checkbox"
          className="size-4 accent-(--accent)"
          aria-label={`Select all ${count(total)}`}
          checked={state === "all"}
          ref={(box) => {
            if (box) box.indeterminate = state === "some";
          }}
          onChange={() => (state === "all" ? none() : all())}
        />
      </label>
    </div>
  );
}

function Header<R>({ columns, sort, onSort, template, selecting, total }: GridProps<R> & { template: string }) {
  return (
    <div
      role="row"
      aria-rowindex={1}
      className="grid border-line border-b bg-raised font-medium text-dim text-sm"
      style={{ gridTemplateColumns: template, height: HEADER_PX }}
    >
      {selecting && <All selecting={selecting} total={total} />}
      {columns.map((column) => {
        const ascending = column.sort !== undefined && sort === column.sort;
        const descending = column.sort !== undefined && sort === `-${column.sort}`;
        const order = ascending ? "ascending" : descending ? "descending" : column.sort ? "none" : undefined;
        const side = column.align === "right" ? "justify-end text-right" : "";
        return (
          <div key={column.id} role="columnheader" aria-sort={order} className={`flex items-center ${side}`}>
            {column.sort ? (
              <button
                type="button"
                className={`flex h-full w-full items-center gap-1 truncate px-2 hover:text-text ${side}`}
                onClick={() => onSort(descending ? (column.sort as string) : `-${column.sort}`)}
              >
                {column.title}
                <span aria-hidden="true">{ascending ? "↑" : descending ? "↓" : ""}</span>
              </button>
            ) : (
              <span className="truncate px-2">{column.title}</span>
            )}
          </div>
        );
      })}
    </div>
  );
}

interface RowProps {
  id: string;
  index: number;
  top: number;
  row: unknown;
  columns: Column<unknown>[];
  template: string;
  active: boolean;
  onActivate: (index: number) => void;
  selected: boolean;
  /** What it is called, where rows can be selected. */
  name?: string;
  onToggle: (index: number, ranging: boolean) => void;
}

const Row = memo(function Row(props: RowProps) {
  const { id, index, top, row, columns, template, active, onActivate, selected, name, onToggle } = props;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the grid has the keys.
    <div
      id={id}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={name === undefined ? active : selected}
      onClick={() => onActivate(index)}
      className={`absolute inset-x-0 grid border-line border-b hover:bg-hover ${selected ? "bg-hover" : ""} ${active ? "group-focus-visible:bg-hover group-focus-visible:shadow-[inset_3px_0_0_var(--accent)]" : ""}`}
      style={{ gridTemplateColumns: template, height: ROW_PX, transform: `translateY(${top}px)` }}
    >
      {name !== undefined && (
        <div role="gridcell" className="flex items-center">
          <label className="flex size-full items-center justify-center">
            <input
              type="checkbox"
              tabIndex={-1}
              className="size-4 accent-(--accent)"
              aria-label={`Select ${name}`}
              checked={selected}
              onChange={(event) => onToggle(index, (event.nativeEvent as MouseEvent).shiftKey)}
            />
          </label>
        </div>
      )}
      {columns.map((column) => (
        <div
          key={column.id}
          role="gridcell"
          className={`flex min-w-0 items-center px-2 ${column.align === "right" ? "justify-end" : ""}`}
        >
          <span className="min-w-0 truncate">{row === undefined ? "–" : column.cell(row)}</span>
        </div>
      ))}
    </div>
  );
});
