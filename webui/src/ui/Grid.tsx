/**
 * A table of any length: an ARIA grid of which only the rows in view exist.
 *
 * Rows are asked for in windows, by what is in view; a row that has not come yet stands as a dash. Its keys are those of
 * the table of keys; letters reach it from anywhere on the page. Headers sort on the server.
 */

import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type CSSProperties,
  type KeyboardEvent,
  memo,
  type ReactNode,
  useCallback,
  useEffect,
  useId,
  useRef,
  useState,
} from "react";
import { useRowPx } from "../density";
import { count } from "../format";
import { type Command, useCommands } from "../keys/commands";
import { type KeyName, meaning, spelled } from "../keys/table";
import { clicked, sortsOf } from "../services/sorts";
import { visible } from "../visible";
import { returned, rowToReturnTo, stand } from "./returning";

/** Rows of so many pixels have two lines of text. */
const TALL_PX = 40;
const HEADER_PX = 30;
/** Of the boxes that select. */
const BOX_PX = 36;
/** Beyond that browsers draw no element: whoever looks for something narrows the list. */
const MAX_ROWS = 900_000;

export interface Column<R> {
  id: string;
  title: string;
  /** CSS width; `1fr` columns share what is left. */
  width: string;
  align?: "right";
  /** The same in pixels, where it can be changed or is pinned. */
  px?: number;
  /** It stays at the left while the table scrolls sideways; pinned ones come first. */
  pinned?: boolean;
  /** Name for sorting, where the server can. */
  sort?: string;
  cell: (row: R) => ReactNode;
  /** How strongly it is coloured, from 0 to 1; undefined: it is not. */
  heat?: (row: R) => number | undefined;
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
  /** So many from the top, and no others. */
  first: (count: number) => void;
}

/** How columns are arranged by hand. */
export interface Arranging {
  /** In pixels; `done`: the hand has let go. */
  resize: (id: string, width: number, done: boolean) => void;
  /** One in the place of another. */
  move: (id: string, to: string) => void;
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
  /** `name` or `-name`; several with commas. */
  sort: string;
  /** It may be sorted by several columns. */
  manySorts?: boolean;
  onSort: (sort: string) => void;
  /** Pixels below which the table scrolls sideways. */
  minWidth?: number;
  /** Rows shown are of a former question. */
  stale?: boolean;
  className?: string;
  selecting?: Selecting<R>;
  arranging?: Arranging;
}

export function Grid<R>(props: GridProps<R>) {
  const { columns, onView, rowAt, onOpen, selecting } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(() => rowToReturnTo() ?? 0);
  const id = useId();
  const rowPx = useRowPx();
  const total = Math.min(props.total, MAX_ROWS);
  const rows = useVirtualizer({
    count: total,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowPx,
    scrollMargin: HEADER_PX,
    scrollPaddingStart: HEADER_PX,
    overscan: 8,
  });
  // What was measured is of rows of another height.
  useEffect(() => rows.measure(), [rows, rowPx]);
  const items = rows.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items[items.length - 1]?.index ?? 0;
  useEffect(() => onView(first, last), [onView, first, last]);
  useEffect(() => stand(active), [active]);
  useEffect(() => {
    const row = rowToReturnTo();
    if (row === undefined) return;
    returned();
    rows.scrollToIndex(row, { align: "auto" });
    scroller.current?.focus();
  }, [rows]);

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
  const pageRows = () => Math.max(1, Math.floor(((scroller.current?.clientHeight ?? 0) - HEADER_PX) / rowPx) - 1);
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
    const { names } = meaning(spelled(event));
    const step = names.map((name) => steps[name]).find((each) => each !== undefined);
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
  const template = (selecting ? [`${BOX_PX}px`, ...widths] : widths).join(" ");
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
              tall={rowPx >= TALL_PX}
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
        <p className="p-2 text-dim">Showing the first {count(MAX_ROWS)}: narrow the list to see others.</p>
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
    <div role="columnheader" className="sticky left-0 z-1 flex items-center bg-inherit">
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

/** Where a pinned cell stays, from the left; of others nothing. The first is `place` 0. */
function pinnedAt(columns: readonly Column<never>[], place: number, selectable: boolean): CSSProperties | undefined {
  if (!columns[place]?.pinned) return undefined;
  return {
    position: "sticky",
    left: columns.slice(0, place).reduce((sum, each) => sum + (each.px ?? 0), selectable ? BOX_PX : 0),
  };
}

/** From the colour of the table to that of the accent; text stays legible on all of it. */
function heated(column: Column<unknown>, row: unknown): CSSProperties | undefined {
  const share = row === undefined ? undefined : column.heat?.(row);
  if (share === undefined) return undefined;
  return { backgroundColor: `color-mix(in srgb, var(--accent) ${Math.round(4 + 36 * share)}%, var(--surface))` };
}

const ACTIVE = "group-focus-visible:shadow-[inset_3px_0_0_var(--accent)]";
const PINNED = "sticky z-1 bg-inherit";

function Header<R>(props: GridProps<R> & { template: string }) {
  const { columns, sort, onSort, template, selecting, total, arranging, manySorts = false } = props;
  const sorts = sortsOf(sort);
  return (
    <div
      role="row"
      aria-rowindex={1}
      className="grid border-line border-b bg-raised font-medium text-dim text-sm"
      style={{ gridTemplateColumns: template, height: HEADER_PX }}
    >
      {selecting && <All selecting={selecting} total={total} />}
      {columns.map((column, place) => {
        const rank = sorts.findIndex((each) => each.column === column.sort);
        const now = sorts[rank];
        const way = now ? (now.descending ? "descending" : "ascending") : "none";
        // Only what is sorted by first is said to be: the others have their rank in words.
        const order = column.sort ? (rank > 0 ? "other" : way) : undefined;
        const side = column.align === "right" ? "justify-end text-right" : "";
        return (
          <div
            key={column.id}
            role="columnheader"
            aria-label={column.title}
            aria-sort={order}
            draggable={arranging !== undefined}
            onDragStart={(event) => event.dataTransfer.setData(DRAGGED, column.id)}
            onDragOver={(event) => event.dataTransfer.types.includes(DRAGGED) && event.preventDefault()}
            onDrop={(event) => {
              event.preventDefault();
              arranging?.move(event.dataTransfer.getData(DRAGGED), column.id);
            }}
            style={pinnedAt(columns as Column<never>[], place, selecting !== undefined)}
            className={`relative flex min-w-0 items-center ${column.pinned ? PINNED : ""} ${side}`}
          >
            {column.sort ? (
              <button
                type="button"
                className={`flex h-full w-full items-center gap-1 truncate px-2 hover:text-text ${side}`}
                title={
                  manySorts ? `${column.title}: click to sort by it, Shift-click to add it to the order` : undefined
                }
                onClick={(event) => onSort(clicked(sort, column.sort as string, manySorts && event.shiftKey))}
              >
                <span className="truncate" title={visible(column.title)}>
                  {visible(column.title)}
                </span>
                {now && (
                  <span aria-hidden="true">{`${now.descending ? "↓" : "↑"}${sorts.length > 1 ? rank + 1 : ""}`}</span>
                )}
                {rank > 0 && <span className="sr-only">{`, sorted by ${rank + 1}., ${way}`}</span>}
              </button>
            ) : (
              <span className="truncate px-2">{visible(column.title)}</span>
            )}
            {arranging && column.px !== undefined && (
              <Edge
                title={column.title}
                width={column.px}
                onWidth={(to, done) => arranging.resize(column.id, to, done)}
              />
            )}
          </div>
        );
      })}
    </div>
  );
}

const DRAGGED = "application/x-tenax-column";
const STEP_PX = 16;

/** The edge of a column: dragged, or moved by arrows, it changes the width. */
function Edge(props: { title: string; width: number; onWidth: (width: number, done: boolean) => void }) {
  const from = useRef<{ x: number; width: number } | null>(null);
  const widthAt = (x: number) => (from.current ? from.current.width + x - from.current.x : props.width);
  return (
    <div
      role="separator"
      aria-orientation="vertical"
      aria-label={`Width of ${props.title}`}
      aria-valuenow={props.width}
      aria-valuemin={0}
      tabIndex={0}
      draggable
      onDragStart={(event) => {
        event.preventDefault();
        event.stopPropagation();
      }}
      onKeyDown={(event) => {
        const step = event.key === "ArrowRight" ? STEP_PX : event.key === "ArrowLeft" ? -STEP_PX : 0;
        if (step === 0) return;
        event.preventDefault();
        props.onWidth(props.width + step, true);
      }}
      onPointerDown={(event) => {
        event.preventDefault();
        event.currentTarget.setPointerCapture(event.pointerId);
        from.current = { x: event.clientX, width: props.width };
      }}
      onPointerMove={(event) => from.current && props.onWidth(widthAt(event.clientX), false)}
      onPointerUp={(event) => {
        if (from.current) props.onWidth(widthAt(event.clientX), true);
        from.current = null;
      }}
      className="absolute top-0 right-0 h-full w-2 cursor-col-resize touch-none border-line border-r hover:border-accent focus-visible:border-accent"
    />
  );
}

interface RowProps {
  id: string;
  index: number;
  top: number;
  tall: boolean;
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
  const { id, index, top, tall, row, columns, template, active, onActivate, selected, name, onToggle } = props;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the grid has the keys.
    <div
      id={id}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={name === undefined ? active : selected}
      onClick={() => onActivate(index)}
      className={`absolute inset-x-0 grid border-line border-b hover:bg-hover ${selected ? "bg-hover" : "bg-surface"} ${active ? `group-focus-visible:bg-hover ${ACTIVE}` : ""}`}
      style={{ gridTemplateColumns: template, height: "var(--row)", transform: `translateY(${top}px)` }}
    >
      {name !== undefined && (
        <div
          role="gridcell"
          className={`flex items-center ${columns[0]?.pinned ? `${PINNED} left-0` : ""} ${active ? ACTIVE : ""}`}
        >
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
      {columns.map((column, place) => (
        <div
          key={column.id}
          role="gridcell"
          style={{ ...pinnedAt(columns as Column<never>[], place, name !== undefined), ...heated(column, row) }}
          className={`flex min-w-0 items-center px-2 ${column.pinned ? PINNED : ""} ${column.align === "right" ? "justify-end" : ""}`}
        >
          <span className={`min-w-0 ${tall ? "line-clamp-2 break-words" : "truncate"}`}>
            {row === undefined ? "–" : column.cell(row)}
          </span>
        </div>
      ))}
    </div>
  );
});
