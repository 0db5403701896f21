/**
 * Machines and their slots: an ARIA grid of any length, of which only the rows in view exist. A cell is a slot; what it
 * does is its shape, its colour, and in words what is pointed at or reached by the arrows.
 */

import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, memo, useCallback, useEffect, useId, useRef, useState } from "react";
import { AgentActions } from "../actions/agents";
import { useRowPx } from "../density";
import { useCommands } from "../keys/commands";
import { type KeyName, meaning, spelled } from "../keys/table";
import type { Agent, Slot } from "../services/cluster";
import { Moment } from "../ui/values";
import { kindsOf, sentence, slotsOf, USES, type Use, useOf } from "./standing";

const HEADER_PX = 30;
const CELL_PX = 26;
/** Of what stands beside the slots: state, pool, kind, when it was seen, what can be done. */
const STATE_PX = 104;
const REST = "minmax(90px, 1fr) minmax(120px, 1fr) 92px 104px";
const REST_PX = 406;
const NAME = "clamp(112px, 24vw, 240px)";

const LOOKS: Record<Use, string> = {
  used: "border-run bg-run font-semibold text-surface",
  leaving: "border-wait text-wait",
  free: "border-ok text-ok",
  draining: "border-wait border-dashed text-wait",
  disabled: "border-line bg-sunken text-off",
  broken: "border-bad text-bad",
  away: "border-bad border-dashed text-bad",
};
const CELL = "flex size-[22px] items-center justify-center rounded-[3px] border text-[11px] leading-none";

interface Place {
  row: number;
  /** 0: the machine; above it its slots. */
  column: number;
}

/** `open`: the slot, or without one the machine. */
export function Matrix({ agents, open }: { agents: Agent[]; open: (agent: Agent, slot?: Slot) => void }) {
  const scroller = useRef<HTMLDivElement>(null);
  const id = useId();
  const rowPx = useRowPx();
  const [place, setPlace] = useState<Place>({ row: 0, column: 0 });
  const [pointed, setPointed] = useState<string>();
  const at = { row: Math.min(place.row, agents.length - 1), column: place.column };
  const rows = useVirtualizer({
    count: agents.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowPx,
    scrollMargin: HEADER_PX,
    scrollPaddingStart: HEADER_PX,
    overscan: 6,
  });
  // What was measured is of rows of another height.
  useEffect(() => rows.measure(), [rows, rowPx]);
  const go = (row: number, column: number) => {
    const to = Math.max(0, Math.min(agents.length - 1, row));
    const agent = agents[to];
    if (!agent) return;
    const slots = slotsOf(agent);
    const cell = Math.max(0, Math.min(slots.length, column));
    setPlace({ row: to, column: cell });
    const slot = slots[cell - 1];
    setPointed(slot ? sentence(agent, slot) : undefined);
    rows.scrollToIndex(to, { align: "auto" });
  };
  const pageRows = () => Math.max(1, Math.floor(((scroller.current?.clientHeight ?? 0) - HEADER_PX) / rowPx) - 1);
  const steps: Partial<Record<KeyName, () => void>> = {
    rowDown: () => go(at.row + 1, at.column),
    rowUp: () => go(at.row - 1, at.column),
    pageDown: () => go(at.row + pageRows(), at.column),
    pageUp: () => go(at.row - pageRows(), at.column),
    slotLeft: () => go(at.row, at.column - 1),
    slotRight: () => go(at.row, at.column + 1),
    first: () => go(0, at.column),
    last: () => go(agents.length - 1, at.column),
    open: () => {
      const agent = agents[at.row];
      if (agent) open(agent, slotsOf(agent)[at.column - 1]);
    },
  };
  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>) => {
    if (event.target !== scroller.current) return;
    const { names } = meaning(spelled(event));
    const step = names.map((name) => steps[name]).find((each) => each !== undefined);
    if (!step) return;
    event.preventDefault();
    step();
  };
  // From elsewhere on the page letters lead into the grid.
  const enter = (step?: () => void) => () => {
    if (document.activeElement === scroller.current) step?.();
    else scroller.current?.focus();
  };
  useCommands([
    { name: "rowDown", silent: true, run: enter(steps.rowDown) },
    { name: "rowUp", silent: true, run: enter(steps.rowUp) },
  ]);
  const onPlace = useCallback((row: number, column: number) => setPlace({ row, column }), []);
  const most = agents.reduce((sum, agent) => Math.max(sum, slotsOf(agent).length), 1);
  const slotsPx = Math.max(most * CELL_PX + 12, 72);
  const template = `${NAME} ${STATE_PX}px ${slotsPx}px ${REST}`;
  const items = rows.getVirtualItems();
  const shown = items.some((item) => item.index === at.row);
  return (
    <>
      <p className="min-h-5 break-words text-dim">
        {pointed ?? "Point at a slot, or move to it with the arrow keys, to see who is using it."}
      </p>
      <div
        ref={scroller}
        role="grid"
        aria-label="Agents and their slots"
        aria-rowcount={agents.length + 1}
        aria-activedescendant={shown ? `${id}-${at.row}-${at.column}` : undefined}
        tabIndex={0}
        onKeyDown={onKeyDown}
        className="group relative max-h-[max(60vh,16rem)] overflow-auto rounded-md border border-line outline-offset-[-2px]"
      >
        <div role="presentation" style={{ minWidth: `calc(${NAME} + ${STATE_PX + slotsPx + REST_PX}px)` }}>
          <div role="rowgroup" className="sticky top-0 z-10">
            <div
              role="row"
              aria-rowindex={1}
              className="grid items-center border-line border-b bg-raised font-medium text-dim text-sm"
              style={{ gridTemplateColumns: template, height: HEADER_PX }}
            >
              {["Agent", "State", "Slots", "Pool", "Kind", "Last seen", "Actions"].map((title, column) => (
                <div
                  key={title}
                  role="columnheader"
                  className={`truncate px-2 ${column === 0 ? "sticky left-0 bg-inherit" : ""}`}
                >
                  {title}
                </div>
              ))}
            </div>
          </div>
          <div role="rowgroup" className="relative" style={{ height: rows.getTotalSize() }}>
            {items.map((item) => {
              const agent = agents[item.index];
              return (
                agent && (
                  <Row
                    key={agent.id}
                    id={`${id}-${item.index}`}
                    index={item.index}
                    top={item.start - HEADER_PX}
                    agent={agent}
                    template={template}
                    active={item.index === at.row ? at.column : undefined}
                    onPlace={onPlace}
                    onPoint={setPointed}
                  />
                )
              );
            })}
          </div>
        </div>
      </div>
    </>
  );
}

interface RowProps {
  id: string;
  index: number;
  top: number;
  agent: Agent;
  template: string;
  /** The column of its cell that keys act on. */
  active: number | undefined;
  onPlace: (row: number, column: number) => void;
  onPoint: (words: string | undefined) => void;
}

const FOCUSED = "group-focus-visible:outline-2 group-focus-visible:outline-accent group-focus-visible:outline";

const Row = memo(function Row({ id, index, top, agent, template, active, onPlace, onPoint }: RowProps) {
  const { word, shape, tone } = standing(agent);
  const here = active !== undefined;
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      className={`absolute inset-x-0 grid items-center border-line border-b hover:bg-hover ${here ? "bg-surface group-focus-visible:bg-hover" : "bg-surface"}`}
      style={{ gridTemplateColumns: template, height: "var(--row)", transform: `translateY(${top}px)` }}
    >
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the grid has the keys. */}
      <div
        id={`${id}-0`}
        role="rowheader"
        title={agent.id}
        onClick={() => onPlace(index, 0)}
        className={`sticky left-0 z-1 h-full truncate bg-inherit px-2 leading-(--row) ${here ? "group-focus-visible:shadow-[inset_3px_0_0_var(--accent)]" : ""}`}
      >
        {agent.id}
      </div>
      <div role="gridcell" className={`truncate px-2 ${tone}`}>
        <span aria-hidden="true">{shape} </span>
        {word}
      </div>
      <div role="presentation" className="flex gap-1 px-2">
        {slotsOf(agent).map((slot, place) => (
          <Cell
            key={slot.id}
            id={`${id}-${place + 1}`}
            agent={agent}
            slot={slot}
            active={active === place + 1}
            onClick={() => onPlace(index, place + 1)}
            onPoint={onPoint}
          />
        ))}
      </div>
      <div role="gridcell" className="truncate px-2" title={agent.resourcePools.join(", ")}>
        {agent.resourcePools.join(", ")}
      </div>
      <div role="gridcell" className="truncate px-2" title={kindsOf(agent)}>
        {kindsOf(agent)}
      </div>
      <div role="gridcell" className="truncate px-2">
        {agent.connected === false ? <Moment at={agent.lastSeenTime} /> : "now"}
      </div>
      <div role="gridcell" className="px-1">
        <AgentActions agent={agent} />
      </div>
    </div>
  );
});

function Cell(props: {
  id: string;
  agent: Agent;
  slot: Slot;
  active: boolean;
  onClick: () => void;
  onPoint: (words: string | undefined) => void;
}) {
  const { agent, slot, active, onPoint } = props;
  const use = useOf(agent, slot);
  const words = sentence(agent, slot);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the grid has the keys.
    <div
      id={props.id}
      role="gridcell"
      aria-label={words}
      title={words}
      data-use={use}
      onClick={props.onClick}
      onMouseEnter={() => onPoint(words)}
      onMouseLeave={() => onPoint(undefined)}
      className={`${CELL} ${LOOKS[use]} ${active ? FOCUSED : ""}`}
    >
      <span aria-hidden="true">{markOf(use, slot)}</span>
    </div>
  );
}

/** Of one in use how its owner's name begins. */
function markOf(use: Use, slot: Slot): string {
  return use === "used" ? [...(slot.container?.username ?? "")][0]?.toUpperCase() || USES.used.shape : USES[use].shape;
}

function standing(agent: Agent): { word: string; shape: string; tone: string } {
  if (agent.connected === false) return { word: "Away", shape: "✕", tone: "text-bad" };
  if (agent.draining) return { word: "Draining", shape: "◌", tone: "text-wait" };
  if (!agent.enabled) return { word: "Disabled", shape: "⊘", tone: "text-off" };
  return { word: "Ready", shape: "✓", tone: "text-ok" };
}

export function Legend() {
  return (
    <ul aria-label="What the cells mean" className="flex flex-wrap items-center gap-x-3 gap-y-1 text-dim text-sm">
      {(Object.keys(USES) as Use[]).map((use) => (
        <li key={use} className="inline-flex items-center gap-1.5">
          <span aria-hidden="true" className={`${CELL} ${LOOKS[use]}`}>
            {use === "used" ? "A" : USES[use].shape}
          </span>
          {use === "used" ? "in use, with the initial of who uses it" : USES[use].word}
        </li>
      ))}
    </ul>
  );
}
