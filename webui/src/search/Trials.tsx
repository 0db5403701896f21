/** The trials of an experiment, all of them or those that brushes leave, in a table; selected ones are compared. */

import { Link, useNavigate } from "@tanstack/react-router";
import { useCallback } from "react";
import { useCompare } from "../actions/compare";
import { usePicked } from "../actions/picked";
import { count } from "../format";
import { useCommands } from "../keys/commands";
import { keysOf } from "../keys/table";
import { own } from "../own";
import { type Experiment, type Trial, type TrialSort, trialsQuery, WINDOW } from "../services/experiments";
import { type Brushes, brushedQuery } from "../services/searching";
import { Button } from "../ui/Button";
import { type Column, Grid } from "../ui/Grid";
import { Empty, Loading, Problem } from "../ui/notices";
import { Section } from "../ui/Page";
import { StateMark } from "../ui/State";
import { Moment, Ran, Value } from "../ui/values";
import { useWindows } from "../ui/windows";
import { visible } from "../visible";

/** How lists of trials, and lists of runs, call what a column is sorted by. */
const SORTS: Record<string, { trials: TrialSort; runs?: string }> = {
  id: { trials: "SORT_BY_ID", runs: "id" },
  state: { trials: "SORT_BY_STATE", runs: "state" },
  best: { trials: "SORT_BY_BEST_VALIDATION_METRIC", runs: "searcherMetricsVal" },
  steps: { trials: "SORT_BY_BATCHES_PROCESSED" },
  started: { trials: "SORT_BY_START_TIME", runs: "startTime" },
  took: { trials: "SORT_BY_DURATION", runs: "duration" },
  restarts: { trials: "SORT_BY_RESTARTS" },
};

interface TrialsProps {
  experiment: Experiment;
  /** As in the address. */
  sort?: string;
  brushes: Brushes;
}

export function Trials({ experiment, sort: asked = "id", brushes }: TrialsProps) {
  const navigate = useNavigate();
  const compare = useCompare();
  const brushed = Object.keys(brushes).length > 0;
  const name = asked.replace(/^-/, "");
  const known = own(SORTS, name);
  const sort = known && (!brushed || known.runs) ? asked : "id";
  const order = own(SORTS, sort.replace(/^-/, "")) ?? { trials: "SORT_BY_ID" as const, runs: "id" };
  const descends = sort.startsWith("-");
  const windowOf = useCallback(
    (offset: number) =>
      brushed
        ? brushedQuery(experiment.id, brushes, `${descends ? "-" : ""}${order.runs}`, offset, WINDOW)
        : trialsQuery(experiment.id, order.trials, descends, offset, WINDOW),
    [experiment.id, brushes, brushed, order, descends],
  );
  const found = useWindows<Trial>(windowOf, WINDOW);
  const { selecting, picked } = usePicked<Trial>(
    "trial",
    {
      windowOf,
      size: WINDOW,
      total: found.total ?? 0,
      rowAt: found.rowAt,
    },
    `experiment ${experiment.id}`,
  );
  const comparePicked = () => compare(Promise.resolve([...picked]));
  useCommands(
    picked.size === 0
      ? []
      : [
          { name: "compare", title: `Compare ${count(picked.size)} trials`, run: comparePicked },
          { name: "leave", title: "Clear selection", run: selecting.none },
        ],
  );
  return (
    <Section
      title="Trials"
      aside={
        <>
          {brushed && found.total !== undefined && (
            <p className="text-dim" aria-live="polite">
              {count(found.total)} match the selected ranges
            </p>
          )}
          {picked.size > 0 && (
            <>
              <p aria-live="polite">{count(picked.size)} selected</p>
              <Button onClick={comparePicked} aria-keyshortcuts={keysOf("compare")}>
                Compare
              </Button>
              <Button onClick={selecting.none} aria-keyshortcuts={keysOf("leave")}>
                Clear selection
              </Button>
            </>
          )}
        </>
      }
    >
      {found.error && found.total === undefined ? (
        <Problem error={found.error} retry={found.retry} />
      ) : found.total === undefined ? (
        <Loading what="trials" />
      ) : found.total === 0 ? (
        brushed ? (
          <Empty title="No trials match the selected ranges" />
        ) : (
          <Empty title="No trials yet">They appear once the search has begun.</Empty>
        )
      ) : (
        <Grid
          label={`Trials of experiment ${experiment.id}`}
          className={found.total > 14 ? "h-[480px] flex-none" : "flex-none"}
          columns={brushed ? BRUSHED_COLUMNS : COLUMNS}
          minWidth={760}
          total={found.total}
          rowAt={found.rowAt}
          keyOf={(row) => row.id}
          onView={found.onView}
          stale={found.stale}
          sort={sort}
          onSort={(to) => void navigate({ to: ".", search: (former: object) => ({ ...former, sort: to }) } as never)}
          onOpen={(row) => void navigate({ to: "/trials/$trialId", params: { trialId: row.id } })}
          selecting={selecting}
        />
      )}
    </Section>
  );
}

function tried(hparams: Record<string, unknown>): string {
  const pairs = Object.entries(hparams)
    .map(
      ([name, value]) => `${name} ${typeof value === "number" ? Number(value.toPrecision(4)) : JSON.stringify(value)}`,
    )
    .join(", ");
  return visible(pairs);
}

const COLUMNS: Column<Trial>[] = [
  {
    id: "id",
    title: "Trial",
    width: "80px",
    align: "right",
    sort: "id",
    cell: (row) => (
      <Link to="/trials/$trialId" params={{ trialId: row.id }} tabIndex={-1} className="hover:underline">
        {row.id}
      </Link>
    ),
  },
  {
    id: "state",
    title: "State",
    width: "130px",
    sort: "state",
    cell: (row) => <StateMark state={row.state} reason={row.reason} />,
  },
  {
    id: "best",
    title: "Best metric",
    width: "110px",
    align: "right",
    sort: "best",
    cell: (row) => <Value value={row.searcherMetricValue} />,
  },
  {
    id: "steps",
    title: "Steps",
    width: "90px",
    align: "right",
    sort: "steps",
    cell: (row) => count(row.totalBatchesProcessed ?? 0),
  },
  {
    id: "hparams",
    title: "Hyperparameters",
    width: "minmax(160px, 1fr)",
    cell: (row) => <span title={tried(row.hparams)}>{tried(row.hparams) || "–"}</span>,
  },
  { id: "restarts", title: "Restarts", width: "80px", align: "right", sort: "restarts", cell: (row) => row.restarts },
  { id: "started", title: "Started", width: "100px", sort: "started", cell: (row) => <Moment at={row.startTime} /> },
  {
    id: "took",
    title: "Ran for",
    width: "100px",
    align: "right",
    cell: (row) => <Ran of={row} />,
  },
];

/** What lists of runs do not say. */
const UNKNOWN_OF_RUNS = new Set(["steps", "restarts"]);
const BRUSHED_COLUMNS = COLUMNS.filter((column) => !UNKNOWN_OF_RUNS.has(column.id));
