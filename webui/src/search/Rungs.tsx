/** Where the trials of a search stand: all of them, and on each rung where it has rungs. */

import { count, number } from "../format";
import type { Rung, Search } from "../services/searching";

interface Part {
  name: string;
  count: number;
  /** Colour and pattern: what it is stands in words beside it. */
  look: string;
}

const LOOKS = {
  on: "bg-ok",
  ended: "bg-off",
  stopped: "bg-wait",
  running: "bg-run",
  coming: "bg-sunken",
};

export function Rungs({ search }: { search: Search }) {
  const coming = Math.max(0, search.maxTrials - search.created);
  const over = search.created - search.running;
  const all: Part[] = [
    { name: "over", count: over, look: LOOKS.ended },
    { name: "running or waiting", count: search.running, look: LOOKS.running },
    { name: "to come", count: coming, look: LOOKS.coming },
  ];
  const brackets = new Set(search.rungs.map((rung) => rung.bracket)).size;
  return (
    <div className="flex flex-col gap-2">
      <Bar title="All trials" parts={all} most={Math.max(1, search.maxTrials, search.created)} />
      {search.rungs.map((rung, place) => {
        const isFirst = rung.rung === 0;
        return (
          <Bar
            key={`${rung.bracket} ${rung.rung}`}
            title={`${brackets > 1 ? `Bracket ${rung.bracket + 1}, ` : ""}${number(Number(rung.units))} ${search.timeMetric}`}
            parts={partsOf(rung, isFirst)}
            most={Math.max(1, rung.maxTrials)}
            apart={isFirst && place > 0}
            best={rung.bestMetric}
          />
        );
      })}
      {(search.failed > 0 || search.canceled > 0 || search.replaced > 0) && (
        <p className="text-dim text-sm">
          Of those that have ended: {count(search.failed)} failed, {count(search.canceled)} killed
          {search.replaced > 0 && `, ${count(search.replaced)} with hyperparameters that cannot be trained, replaced`}.
        </p>
      )}
    </div>
  );
}

function partsOf(rung: Rung, isFirst: boolean): Part[] {
  const on = rung.count - rung.stopped - rung.ended - rung.running;
  const parts = [
    { name: "went on", count: on, look: LOOKS.on },
    { name: "ended", count: rung.ended, look: LOOKS.ended },
    { name: "stopped", count: rung.stopped, look: LOOKS.stopped },
    { name: "running", count: rung.running, look: LOOKS.running },
  ];
  return isFirst ? [...parts, { name: "pending", count: rung.maxTrials - rung.count, look: LOOKS.coming }] : parts;
}

function Bar(props: { title: string; parts: Part[]; most: number; apart?: boolean; best?: number | null }) {
  const shown = props.parts.filter((part) => part.count > 0);
  return (
    <div
      className={`grid grid-cols-[minmax(120px,32%)_1fr] items-center gap-x-3 gap-y-0.5 ${props.apart ? "mt-1 border-line border-t pt-2" : ""}`}
    >
      <p className="truncate" title={props.title}>
        {props.title}
      </p>
      <div aria-hidden="true" className="flex h-3 gap-px overflow-hidden rounded-sm border border-line">
        {shown.map((part) => (
          <span key={part.name} className={part.look} style={{ width: `${(100 * part.count) / props.most}%` }} />
        ))}
      </div>
      <p className="col-start-2 flex flex-wrap gap-x-3 text-sm">
        {shown.map((part) => (
          <span key={part.name} className="inline-flex items-center gap-1 text-dim">
            <span aria-hidden="true" className={`size-2 rounded-full border border-line ${part.look}`} />
            {count(part.count)} {part.name}
          </span>
        ))}
        {shown.length === 0 && <span className="text-dim">none yet</span>}
        {props.best !== null && props.best !== undefined && <span>best {number(props.best)}</span>}
      </p>
    </div>
  );
}
