/** The newest lines of output, virtualised; it follows its end until one scrolls up. Lines are text, whatever they hold. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState } from "react";
import { absolute, clock } from "../format";
import { Coloured } from "../output/Coloured";
import type { OutputLine } from "../services/output";
import { Button } from "./Button";

const LINE_PX = 18;
const LEVELS: Record<string, string> = {
  error: "text-bad",
  critical: "text-bad",
  warning: "text-wait",
  debug: "text-dim",
};

export function Log({ lines, label, className = "" }: { lines: OutputLine[]; label: string; className?: string }) {
  const scroller = useRef<HTMLElement>(null);
  const [follows, setFollows] = useState(true);
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_PX,
    overscan: 20,
  });
  const newest = lines[lines.length - 1];
  useEffect(() => {
    if (follows && lines.length > 0) rows.scrollToIndex(lines.length - 1, { align: "end" });
  }, [newest, follows, lines.length]);
  const onScroll = () => {
    const place = scroller.current;
    if (place) setFollows(place.scrollTop + place.clientHeight >= place.scrollHeight - LINE_PX);
  };
  return (
    <div className={`relative flex min-h-0 flex-col ${className}`}>
      <section
        ref={scroller}
        aria-label={label}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard.
        tabIndex={0}
        onScroll={onScroll}
        className="min-h-0 flex-1 overflow-auto rounded-md border border-line bg-sunken p-1 font-mono text-sm"
      >
        <div style={{ height: rows.getTotalSize(), position: "relative" }}>
          {rows.getVirtualItems().map((item) => {
            const line = lines[item.index];
            if (!line) return null;
            return (
              <div
                key={item.key}
                className="absolute left-0 flex min-w-full gap-3 whitespace-pre px-1 hover:bg-hover"
                style={{ height: LINE_PX, transform: `translateY(${item.start}px)` }}
              >
                <time className="shrink-0 text-dim" dateTime={line.timestamp} title={absolute(line.timestamp)}>
                  {clock(line.timestamp)}
                </time>
                {line.rank !== null && <span className="shrink-0 text-dim">[{line.rank}]</span>}
                <span className={LEVELS[line.level] ?? ""}>
                  <Coloured line={line.text} />
                  {line.leftOut > 0 && <span className="text-dim"> … {line.leftOut} characters more</span>}
                </span>
              </div>
            );
          })}
        </div>
      </section>
      {!follows && (
        <div className="absolute right-4 bottom-3">
          <Button onClick={() => setFollows(true)}>↓ Newest lines</Button>
        </div>
      )}
    </div>
  );
}
