/** An experiment of several trials: its search, and all of them. A file of its own: one of a single trial never asks for it. */

import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { Suspense, useMemo } from "react";
import { lazy } from "../parts";
import type { Experiment } from "../services/experiments";
import { brushesOf, writtenBrushes } from "./axes";
import { BEST_CURVES } from "./curves";
import { Overview } from "./Overview";

/** Below what is seen at first. */
const Trials = lazy(() => import("./Trials").then(({ Trials }) => ({ default: Trials })));
const Checkpoints = lazy(() => import("./Checkpoints").then(({ Checkpoints }) => ({ default: Checkpoints })));
const route = getRouteApi("/shell/experiments/$experimentId");
const FEWEST = BEST_CURVES[0] as number;

const NONE: readonly string[] = [];

export default function Search({ experiment }: { experiment: Experiment }) {
  const search = route.useSearch();
  const navigate = useNavigate();
  const brushes = useMemo(() => brushesOf(search.brush) ?? {}, [search.brush]);
  const change = (changed: Partial<typeof search>) =>
    void navigate({ to: ".", search: (former: typeof search) => ({ ...former, ...changed }), replace: true } as never);
  return (
    <>
      <Overview
        experiment={experiment}
        brushes={brushes}
        onBrush={(to) => change({ brush: writtenBrushes(to) })}
        best={search.best ?? FEWEST}
        order={search.axes ?? NONE}
        flipped={search.scales ?? NONE}
        onArrange={({ order, flipped }) =>
          change({ ...(order && { axes: order }), ...(flipped && { scales: flipped.length ? flipped : undefined }) })
        }
        onBest={(best) => change({ best: best === FEWEST ? undefined : best })}
      />
      <Suspense>
        <Trials experiment={experiment} sort={search.sort} brushes={brushes} />
        <Checkpoints experiment={experiment} />
      </Suspense>
    </>
  );
}
