/** The checkpoints of a trial: what is in each, and what can be done with it. */

import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { CheckpointActions } from "../../actions/checkpoints";
import { bytes, count, number } from "../../format";
import type { Trial } from "../../services/experiments";
import { useLive } from "../../services/live";
import { type Checkpoint, checkpointsQuery, filesOf, sizeOf, stateOf, stepOf } from "../../services/runs";
import { Button } from "../../ui/Button";
import { Copy } from "../../ui/Copy";
import { Empty, Loading, Problem } from "../../ui/notices";
import { Section } from "../../ui/Page";
import { Table } from "../../ui/Table";
import { Moment, Value } from "../../ui/values";
import { yaml } from "../../yaml";

/** Files that are listed; the command line has all of them. */
const MAX_FILES = 500;

export function Checkpoints({ trial, chosen }: { trial: Trial; chosen?: string }) {
  const shown = useLive(checkpointsQuery(trial.id));
  const [withDeleted, setWithDeleted] = useState(false);
  if (shown.error && !shown.data) return <Problem error={shown.error} retry={() => void shown.refetch()} />;
  if (!shown.data) return <Loading what="checkpoints" />;
  if (shown.data.checkpoints.length === 0) return <Empty title="No checkpoints yet" />;
  const total = shown.data.pagination.total ?? 0;
  const best = trial.bestCheckpoint?.uuid;
  const open = shown.data.checkpoints.find((row) => row.uuid === chosen);
  const kept = shown.data.checkpoints.filter((row) => row.state !== "STATE_DELETED");
  const deleted = shown.data.checkpoints.length - kept.length;
  // One that the address names is shown whatever became of it.
  const rows = shown.data.checkpoints.filter(
    (row) => withDeleted || kept.length === 0 || row === open || kept.includes(row),
  );
  return (
    <>
      <Table
        label="Checkpoints"
        rows={rows}
        keyOf={(row) => row.uuid}
        columns={[
          {
            id: "uuid",
            title: "Checkpoint",
            cell: (row) => (
              <Link
                to="/trials/$trialId"
                params={{ trialId: trial.id }}
                search={{ tab: "checkpoints", checkpoint: row.uuid === chosen ? undefined : row.uuid }}
                aria-current={row.uuid === chosen ? "true" : undefined}
                title={row.uuid}
                className={`inline-flex min-h-6 items-center hover:underline ${row.uuid === chosen ? "font-semibold" : ""}`}
              >
                {row.uuid.slice(0, 8)}
              </Link>
            ),
          },
          { id: "step", title: "Step", align: "right", cell: (row) => count(stepOf(row)) },
          {
            id: "state",
            title: "State",
            cell: (row) => (
              <>
                {stateOf(row)}
                {row.uuid === best && <span className="text-ok"> ◆ best</span>}
              </>
            ),
          },
          {
            id: "metric",
            title: "Metric",
            align: "right",
            cell: (row) => <Value value={row.training?.searcherMetric as number | null | undefined} />,
          },
          { id: "size", title: "Size", align: "right", cell: (row) => bytes(sizeOf(row)) },
          { id: "files", title: "Files", align: "right", cell: (row) => count(filesOf(row).length) },
          { id: "at", title: "Saved", cell: (row) => <Moment at={row.reportTime} /> },
        ]}
      />
      {deleted > 0 && kept.length > 0 && (
        <Button className="self-start" onClick={() => setWithDeleted(!withDeleted)}>
          {withDeleted ? "Hide" : "Show"} the {count(deleted)} whose files are deleted
        </Button>
      )}
      {total > shown.data.checkpoints.length && (
        <p className="text-dim">
          The newest {count(shown.data.checkpoints.length)} of {count(total)}.
        </p>
      )}
      {open ? (
        <Details checkpoint={open} trial={trial} />
      ) : (
        <p className="text-dim">
          Choose one to see its files and metadata, delete it, or register it as a model version.
        </p>
      )}
    </>
  );
}

function Details({ checkpoint, trial }: { checkpoint: Checkpoint; trial: Trial }) {
  const files = filesOf(checkpoint);
  const download = `tenax checkpoint download ${checkpoint.uuid}`;
  return (
    <Section
      title={`Checkpoint ${checkpoint.uuid.slice(0, 8)} at step ${number(stepOf(checkpoint))}`}
      aside={<CheckpointActions checkpoint={checkpoint} trial={trial} step={stepOf(checkpoint)} />}
    >
      <p className="flex flex-wrap items-center gap-2">
        <code className="max-w-full overflow-x-auto rounded-md bg-sunken px-2 py-1 font-mono text-sm">{download}</code>
        <Copy text={download} />
      </p>
      <div className="grid gap-3 lg:grid-cols-2">
        <Table
          label="Files"
          rows={files.slice(0, MAX_FILES)}
          keyOf={([name]) => name}
          columns={[
            { id: "name", title: "File", wide: true, cell: ([name]) => <span title={name}>{name}</span> },
            { id: "size", title: "Size", align: "right", cell: ([, size]) => bytes(size) },
          ]}
        />
        <pre
          // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard.
          tabIndex={0}
          className="overflow-auto rounded-md border border-line bg-sunken p-3 font-mono text-sm"
        >
          {yaml(checkpoint.metadata)}
        </pre>
      </div>
      {files.length > MAX_FILES && (
        <p className="text-dim">
          The first {count(MAX_FILES)} of {count(files.length)} files.
        </p>
      )}
    </Section>
  );
}
