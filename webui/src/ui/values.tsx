/** Values as they stand in tables and facts. */

import { absolute, ago, duration, number, percent, until } from "../format";
import type { State } from "../services/experiments";
import { useNow, useNowIf } from "./now";

/** A moment: relative, with the absolute where one looks closer. */
export function Moment({ at }: { at: string | null | undefined }) {
  const now = useNow(5000);
  if (!at) return <span className="text-dim">–</span>;
  return (
    <time dateTime={at} title={absolute(at)} className="whitespace-nowrap">
      {ago(at, new Date(now))}
    </time>
  );
}

/** A moment to come: in how much time; the absolute where one looks closer. */
export function Until({ at }: { at: string | null | undefined }) {
  const now = useNow(5000);
  if (!at) return <span className="text-dim">–</span>;
  return (
    <time dateTime={at} title={absolute(at)} className="whitespace-nowrap">
      {until(at, new Date(now))}
    </time>
  );
}

/** How long something took; of what goes on (`runs`) also what has passed since it was asked for, at `asOf`. */
export function Elapsed({ seconds, asOf, runs }: { seconds?: number | null; asOf?: number; runs: boolean }) {
  const goes = runs && asOf !== undefined;
  const now = useNowIf(goes, 1000);
  return <>{duration((seconds ?? 0) + (goes ? Math.max(0, now - asOf) / 1000 : 0))}</>;
}

/** In how much time an experiment or a trial ran. */
export function Ran({ of }: { of: { state: State; runningSeconds: number; asOf?: number } }) {
  return <Elapsed seconds={of.runningSeconds} asOf={of.asOf} runs={of.state === "STATE_RUNNING"} />;
}

/** A number with four significant digits; all of them in the title. */
export function Value({ value }: { value: number | null | undefined }) {
  return <span title={value === null || value === undefined ? undefined : String(value)}>{number(value)}</span>;
}

/** How far something is: a bar and a number. */
export function Progress({ share, label }: { share: number; label: string }) {
  const bounded = Math.min(1, Math.max(0, share));
  return (
    <span className="flex items-center gap-2">
      <span
        role="progressbar"
        aria-label={label}
        aria-valuenow={Math.round(bounded * 100)}
        aria-valuemin={0}
        aria-valuemax={100}
        className="h-1.5 w-14 shrink-0 overflow-hidden rounded-full bg-line"
      >
        <span className="block h-full rounded-full bg-dim" style={{ width: `${bounded * 100}%` }} />
      </span>
      <span className="w-10 text-right">{percent(share)}</span>
    </span>
  );
}

/** A text that is not the main thing; all of it where one looks closer. */
export function Dim({ text }: { text: string }) {
  return (
    <span className="text-dim" title={text}>
      {text || "–"}
    </span>
  );
}
