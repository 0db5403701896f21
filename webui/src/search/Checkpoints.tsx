/** The checkpoints of a search, of all its trials in one list: the best first, or the newest; each leads to its trial. */

import { Link } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { useInView } from "../charts/inview";
import { bytes, count } from "../format";
import type { Experiment } from "../services/experiments";
import { useLive } from "../services/live";
import { type Checkpoint, experimentCheckpointsQuery, sizeOf, stateOf, stepOf } from "../services/runs";
import { Button, FIELD } from "../ui/Button";
import { Loading, Problem } from "../ui/notices";
import { Section } from "../ui/Page";
import { Table } from "../ui/Table";
import { Moment, Value } from "../ui/values";

/** Rows that are there at first, and once more are asked for: each comes with all that was measured at its step. */
const FIRST = 20;
const MOST = 200;

export function Checkpoints({ experiment }: { experiment: Experiment }) {
  const place = useRef<HTMLDivElement>(null);
  const inView = useInView(place);
  const reached = useRef(false);
  // Asked for where somebody scrolls to it, and kept then.
  reached.current ||= inView;
  const [newest, setNewest] = useState(false);
  if (!experiment.checkpointCount) return null;
  return (
    <div ref={place}>
      <Section
        title="Checkpoints"
        aside={
          <select
            aria-label="Order of checkpoints"
            className={FIELD}
            value={newest ? "newest" : "best"}
            onChange={(event) => setNewest(event.target.value === "newest")}
          >
            <option value="best">Best first</option>
            <option value="newest">Newest first</option>
          </select>
        }
      >
        {reached.current ? <Rows experiment={experiment} newest={newest} /> : <div className="h-40" />}
      </Section>
    </div>
  );
}

function Rows({ experiment, newest }: { experiment: Experiment; newest: boolean }) {
  const [limit, setLimit] = useState(FIRST);
  const found = useLive(experimentCheckpointsQuery(experiment.id, newest, limit));
  if (found.error && !found.data) return <Problem error={found.error} retry={() => void found.refetch()} />;
  if (!found.data) return <Loading what="checkpoints" />;
  const { rows, total } = found.data;
  if (total === 0) return <p className="text-dim">The files of all its checkpoints have been deleted.</p>;
  return (
    <>
      <Table
        label="Checkpoints of all trials"
        rows={rows}
        keyOf={(row) => row.uuid}
        columns={columnsOf(experiment.searcherMetric)}
      />
      {total > rows.length && (
        <p className="flex flex-wrap items-center gap-3 text-dim">
          The {newest ? "newest" : "best"} {count(rows.length)} of {count(total)}.
          {rows.length < MOST && <Button onClick={() => setLimit(MOST)}>Show more</Button>}
        </p>
      )}
    </>
  );
}

function columnsOf(metric: string | undefined) {
  return [
    {
      id: "uuid",
      title: "Checkpoint",
      cell: (row: Checkpoint) => (
        <Link
          to="/trials/$trialId"
          params={{ trialId: row.training.trialId ?? 0 }}
          search={{ tab: "checkpoints", checkpoint: row.uuid }}
          title={row.uuid}
          className="inline-flex min-h-6 items-center hover:underline"
        >
          {row.uuid.slice(0, 8)}
        </Link>
      ),
    },
    {
      id: "trial",
      title: "Trial",
      align: "right" as const,
      cell: (row: Checkpoint) => (
        <Link
          to="/trials/$trialId"
          params={{ trialId: row.training.trialId ?? 0 }}
          className="inline-flex min-h-6 items-center hover:underline"
        >
          {row.training.trialId}
        </Link>
      ),
    },
    { id: "step", title: "Step", align: "right" as const, cell: (row: Checkpoint) => count(stepOf(row)) },
    {
      id: "metric",
      title: metric || "Metric",
      align: "right" as const,
      cell: (row: Checkpoint) => <Value value={row.training.searcherMetric} />,
    },
    { id: "state", title: "State", cell: stateOf },
    { id: "size", title: "Size", align: "right" as const, cell: (row: Checkpoint) => bytes(sizeOf(row)) },
    { id: "at", title: "Saved", cell: (row: Checkpoint) => <Moment at={row.reportTime} /> },
  ];
}
