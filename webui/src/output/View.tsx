/** Lines in view, of an output of any length: it shows a part of `SPAN` rows at a time, which moves with whoever scrolls. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { absolute, clock } from "../format";
import type { OutputLine } from "../services/output";
import { Coloured } from "./Coloured";
import { plain } from "./escapes";

const LINE_PX = 18;
/** Rows that the scroll bar covers: browsers lay out no page of a hundred million pixels. */
const SPAN = 100_000;
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
  const rows = useVirtualizer({
    count: length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_PX,
    overscan: 30,
    getItemKey: (index) => from + index,
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
  const shown = items.map((item) => numberAt(from + item.index)).filter((number) => number !== undefined);
  useEffect(() => props.ensure(shown), [shown.join()]);
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
            <div
              key={item.key}
              ref={props.wrap ? rows.measureElement : undefined}
              data-index={item.index}
              data-line={number === undefined ? undefined : number + 1}
              aria-current={number !== undefined && number === props.marked ? "true" : undefined}
              className={`absolute left-0 flex gap-3 border-l-2 px-1 hover:bg-hover aria-[current]:bg-hover aria-[current]:outline aria-[current]:outline-accent ${
                props.wrap ? "w-full whitespace-pre-wrap break-all" : "min-w-full whitespace-pre"
              } ${number !== undefined && props.isHit(number) ? "border-accent" : "border-transparent"}`}
              style={{ minHeight: LINE_PX, transform: `translateY(${item.start}px)` }}
            >
              <Row {...props} number={number} line={line} />
            </div>
          );
        })}
      </div>
    </section>
  );
}

function Row({ number, line, utc, text, pick }: Rows & { number: number | undefined; line: OutputLine | undefined }) {
  return (
    <>
      {number === undefined ? (
        <span className="w-16 shrink-0 text-right text-dim">…</span>
      ) : (
        <button
          type="button"
          tabIndex={-1}
          className="w-16 shrink-0 select-none text-right text-dim hover:underline"
          title="A link to this line"
          onClick={() => pick(number)}
        >
          {number + 1}
        </button>
      )}
      {line && (
        <>
          <time className="shrink-0 text-dim" dateTime={line.timestamp} title={absolute(line.timestamp)}>
            {utc ? line.timestamp.slice(11, 19) : clock(line.timestamp)}
          </time>
          {line.rank !== null && <span className="shrink-0 text-dim">[{line.rank}]</span>}
          <span className={LEVELS[line.level] ?? ""}>
            <Text line={line.text} part={text} />
            {line.leftOut > 0 && <span className="text-dim"> … {line.leftOut} characters more</span>}
          </span>
        </>
      )}
    </>
  );
}

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
