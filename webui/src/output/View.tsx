/** Lines in view, of an output of any length: it shows a part of `SPAN` rows at a time, which moves with whoever scrolls. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { absolute, clock } from "../format";
import type { OutputLine } from "../services/output";
import { blocks } from "./blocks";
import { Coloured } from "./Coloured";
import { plain } from "./escapes";

const LINE_PX = 18;
/** Rows that the scroll bar covers: browsers lay out no page of a hundred million pixels. */
const SPAN = 100_000;
/** Lines before the end that are in view while it is followed, at most. */
const FOLLOWED = 100;
const AGAIN = 20;
const LEVELS: Record<string, string> = {
  error: "text-bad",
  critical: "text-bad",
  warning: "text-wait",
  debug: "text-dim",
  trace: "text-dim",
};

interface Rows {
  label: string;
  count: number;
  /** The number of the line at a place, undefined beyond the end. */
  numberAt: (place: number) => number | undefined;
  get: (number: number) => OutputLine | undefined;
  /** Fetch what is not here of these lines. */
  ensure: (numbers: number[]) => void;
  unfinished: OutputLine[];
  follows: boolean;
  setFollows: (follows: boolean) => void;
  /** The place that is to be in view; a new object for each time. */
  target: { place: number } | undefined;
  marked: number | undefined;
  isHit: (number: number) => boolean;
  text: string;
  wrap: boolean;
  utc: boolean;
  pick: (number: number) => void;
}

export function View(props: Rows) {
  const { count, numberAt, unfinished, follows, target } = props;
  const all = count + unfinished.length;
  const scroller = useRef<HTMLElement>(null);
  const [start, setStart] = useState(0);
  const from = follows ? Math.max(0, all - SPAN) : Math.min(start, Math.max(0, all - 1));
  const length = Math.min(SPAN, all - from);
  // Of another one all places are measured again, for each frame of scrolling.
  const getItemKey = useCallback((index: number) => from + index, [from]);
  const rows = useVirtualizer({
    count: length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_PX,
    overscan: 30,
    getItemKey,
  });
  const last = useRef({ top: 0, from });
  // The end stays in view when lines come, and when what stands above it takes more room.
  useLayoutEffect(() => {
    const place = scroller.current;
    if (!follows || !place) return;
    const pin = () => {
      place.scrollTop = place.scrollHeight;
    };
    pin();
    const watch = new ResizeObserver(pin);
    watch.observe(place);
    if (place.firstElementChild) watch.observe(place.firstElementChild);
    return () => watch.disconnect();
  }, [follows, length, from]);
  useLayoutEffect(() => {
    if (!target) return;
    const begin = Math.max(0, Math.min(target.place - SPAN / 2, all - SPAN));
    setStart(begin);
    requestAnimationFrame(() => rows.scrollToIndex(target.place - begin, { align: "center" }));
  }, [target]);
  const items = rows.getVirtualItems();
  const [top, bottom] = follows
    ? [count - FOLLOWED, count - 1]
    : [from + (items[0]?.index ?? 0), from + (items.at(-1)?.index ?? -1)];
  const near = blocks(top, bottom, count);
  useEffect(() => {
    const numbers: number[] = [];
    for (let place = near.first; place < near.end; place++) {
      const number = numberAt(place);
      if (number !== undefined) numbers.push(number);
    }
    props.ensure(numbers);
    // Also after a few lines: what could not be fetched is asked for again.
  }, [near.first, near.end, Math.floor(top / AGAIN)]);
  const picked = useRef(props.pick);
  picked.current = props.pick;
  const pick = useCallback((number: number) => picked.current(number), []);
  const move = (begin: number) => {
    const place = scroller.current;
    if (!place || begin === from) return;
    const first = from + Math.floor(place.scrollTop / LINE_PX);
    setStart(begin);
    requestAnimationFrame(() => rows.scrollToIndex(first - begin, { align: "start" }));
  };
  const onScroll = () => {
    const place = scroller.current;
    if (!place) return;
    const up = place.scrollTop < last.current.top - 2 && last.current.from === from;
    last.current = { top: place.scrollTop, from };
    const atEnd = place.scrollTop + place.clientHeight >= place.scrollHeight - LINE_PX;
    if (follows) {
      if (up && !atEnd) {
        setStart(from);
        props.setFollows(false);
      }
    } else if (atEnd && from + length >= all) props.setFollows(true);
    else if (atEnd) move(Math.min(all - SPAN, from + SPAN / 2));
    else if (place.scrollTop < LINE_PX && from > 0) move(Math.max(0, from - SPAN / 2));
  };
  return (
    <section
      ref={scroller}
      aria-label={props.label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard.
      tabIndex={0}
      onScroll={onScroll}
      className="min-h-0 flex-1 overflow-auto rounded-md border border-line bg-sunken p-1 font-mono text-sm"
    >
      <div style={{ height: rows.getTotalSize(), position: "relative" }}>
        {items.map((item) => {
          const number = numberAt(from + item.index);
          const line = number === undefined ? unfinished[from + item.index - count] : props.get(number);
          return (
            <Row
              key={item.key}
              index={item.index}
              top={item.start}
              measure={props.wrap ? rows.measureElement : undefined}
              number={number}
              line={line}
              marked={number !== undefined && number === props.marked}
              hit={number !== undefined && props.isHit(number)}
              wrap={props.wrap}
              utc={props.utc}
              text={props.text}
              pick={pick}
            />
          );
        })}
      </div>
    </section>
  );
}

interface RowProps {
  index: number;
  top: number;
  measure?: (row: HTMLDivElement | null) => void;
  number: number | undefined;
  line: OutputLine | undefined;
  marked: boolean;
  hit: boolean;
  wrap: boolean;
  utc: boolean;
  text: string;
  pick: (number: number) => void;
}

/** Drawn anew only where something of it changes: scrolling moves none, and brings a few. */
const Row = memo(function Row({ number, line, text, ...props }: RowProps) {
  return (
    <div
      ref={props.measure}
      data-index={props.index}
      data-line={number === undefined ? undefined : number + 1}
      aria-current={props.marked ? "true" : undefined}
      className={`absolute left-0 flex gap-3 border-l-2 px-1 hover:bg-hover aria-[current]:bg-hover aria-[current]:outline aria-[current]:outline-accent ${
        props.wrap ? "w-full whitespace-pre-wrap break-all" : "min-w-full whitespace-pre"
      } ${props.hit ? "border-accent" : "border-transparent"}`}
      style={{ minHeight: LINE_PX, transform: `translateY(${props.top}px)` }}
    >
      {number === undefined ? (
        <span className="w-16 shrink-0 text-right text-dim">…</span>
      ) : (
        <button
          type="button"
          tabIndex={-1}
          className="w-16 shrink-0 select-none text-right text-dim hover:underline"
          title="A link to this line"
          onClick={() => props.pick(number)}
        >
          {number + 1}
        </button>
      )}
      {line && (
        <>
          <time className="shrink-0 text-dim" dateTime={line.timestamp} title={absolute(line.timestamp)}>
            {props.utc ? line.timestamp.slice(11, 19) : clock(line.timestamp)}
          </time>
          {line.rank !== null && <span className="shrink-0 text-dim">[{line.rank}]</span>}
          <span className={LEVELS[line.level] ?? ""}>
            <Text line={line.text} part={text} />
            {line.leftOut > 0 && <span className="text-dim"> … {line.leftOut} characters more</span>}
          </span>
        </>
      )}
    </div>
  );
});

/** What is looked for is marked where it stands in the text; elsewhere colours are shown. */
function Text({ line, part }: { line: string; part: string }) {
  const written = part === "" ? "" : plain(line);
  const at = part === "" ? -1 : written.toLowerCase().indexOf(part.toLowerCase());
  if (at >= 0) {
    return (
      <>
        {written.slice(0, at)}
        <mark className="bg-accent text-on-accent">{written.slice(at, at + part.length)}</mark>
        {written.slice(at + part.length)}
      </>
    );
  }
  return <Coloured line={line} />;
}
