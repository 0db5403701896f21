import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { absolute, count } from "../format";
import { histogramQuery, type Writer } from "../services/output";

const TONES = ["bg-off", "bg-off", "bg-off", "bg-run", "bg-wait", "bg-bad", "bg-bad"];

/** How many lines of each level there are over time; a click, or an arrow, goes there. */
export function Histogram({ of, total, go }: { of: Writer; total: number; go: (number: number) => void }) {
  const { data } = useQuery(histogramQuery(of, total));
  const [at, setAt] = useState(0);
  if (!data || data.begins.length === 0) return null;
  const sums = data.begins.map((_, place) => data.counts.reduce((sum, level) => sum + (level[place] ?? 0), 0));
  const top = Math.max(...sums, 1);
  const visit = (place: number) => {
    const bounded = Math.min(sums.length - 1, Math.max(0, place));
    setAt(bounded);
    const first = data.firstLine.slice(bounded).find((number) => number !== null);
    if (first !== undefined && first !== null) go(first);
  };
  const errors = (data.counts[5]?.[at] ?? 0) + (data.counts[6]?.[at] ?? 0);
  const when = absolute(new Date((data.begins[at] ?? 0) / 1000));
  return (
    <div
      role="slider"
      tabIndex={0}
      aria-label="Lines over time"
      aria-valuemin={0}
      aria-valuemax={sums.length - 1}
      aria-valuenow={at}
      aria-valuetext={`${when}: ${count(sums[at] ?? 0)} lines, ${count(errors)} errors`}
      className="flex h-10 shrink-0 cursor-pointer items-end rounded-md border border-line bg-sunken px-1"
      onClick={(event) => {
        const box = event.currentTarget.getBoundingClientRect();
        visit(Math.floor(((event.clientX - box.left) / box.width) * sums.length));
      }}
      onKeyDown={(event) => {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (step !== undefined) visit(at + step);
      }}
    >
      {sums.map((sum, place) => (
        <span
          key={data.begins[place]}
          className="flex h-full flex-1 flex-col-reverse"
          title={`${absolute(new Date((data.begins[place] ?? 0) / 1000))}: ${count(sum)} lines`}
        >
          {data.counts.map((level, number) =>
            level[place] ? (
              <span
                key={data.levels[number]}
                className={`min-h-px ${TONES[number]}`}
                style={{ height: `${(level[place] / top) * 100}%` }}
              />
            ) : null,
          )}
        </span>
      ))}
    </div>
  );
}
