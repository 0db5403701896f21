/** What the charts of a trial stand over: steps, the time since it began, or epochs; and its checkpoints there. */

import { useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import type { ChartSearch } from "../../addresses";
import { nearest } from "../../charts/lines";
import type { Trial } from "../../services/experiments";
import { useLive } from "../../services/live";
import { checkpointsQuery } from "../../services/runs";
import type { Series } from "../../services/trials";

/** The metric that says it, and the axis. */
export const EPOCH = "epoch";

export interface Axis {
  title: string;
  /** Of a report at this step and time (microseconds since 1970). */
  place: (step: number, time: number) => number;
}

/** `epochs`: what was reported of them, by group. */
export function axisOf(x: ChartSearch["x"], began: string, epochs: readonly (Series | undefined)[]): Axis {
  if (x === "time") {
    const start = Date.parse(began);
    return { title: "time since it began", place: (_, time) => (time / 1000 - start) / 1000 };
  }
  if (x === EPOCH) {
    const known = epochs.find((series) => series && series.steps.length > 0);
    return { title: EPOCH, place: (step) => (known ? epochAt(known, step) : step) };
  }
  return { title: "step", place: (step) => step };
}

/** Between two steps at which it was reported: in proportion. */
export function epochAt({ steps, values }: Pick<Series, "steps" | "values">, step: number): number {
  const at = nearest(steps, step);
  const here = steps[at] as number;
  const to = step > here ? at + 1 : step < here ? at - 1 : at;
  const [value, other, there] = [values[at] ?? 0, values[to], steps[to]];
  if (other === undefined || other === null || there === undefined || there === here) return value;
  return value + ((other - value) * (step - here)) / (there - here);
}

export interface Saved {
  checkpoints: { step: number; best: boolean }[];
  /** Shows them. */
  open: () => void;
}

/** The checkpoints of a trial that are there. */
export function useSaved(trial: Trial): Saved {
  const navigate = useNavigate();
  const asked = { ...checkpointsQuery(trial.id), enabled: (trial.checkpointCount ?? 0) > 0 };
  const found = useLive(asked).data?.checkpoints;
  const best = trial.bestCheckpoint?.uuid;
  const checkpoints = useMemo(
    () =>
      (found ?? [])
        .filter((row) => row.state === "STATE_COMPLETED")
        .map((row) => ({
          step: Number((row.metadata as { steps_completed?: number }).steps_completed ?? 0),
          best: row.uuid === best,
        })),
    [found, best],
  );
  const trialId = trial.id;
  const open = useCallback(
    () => void navigate({ to: "/trials/$trialId", params: { trialId }, search: { tab: "checkpoints" } }),
    [navigate, trialId],
  );
  return useMemo(() => ({ checkpoints, open }), [checkpoints, open]);
}
