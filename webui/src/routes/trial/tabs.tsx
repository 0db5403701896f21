/** Parts of a trial beside its charts and output: checkpoints, configuration, attempts. */

import { absolute, count, duration } from "../../format";
import { experimentQuery, type Trial } from "../../services/experiments";
import { useLive } from "../../services/live";
import { attemptsQuery, checkpointsQuery } from "../../services/runs";
import { hasEnded } from "../../services/states";
import { Copy } from "../../ui/Copy";
import { Empty, Loading, Problem } from "../../ui/notices";
import { Section } from "../../ui/Page";
import { Table } from "../../ui/Table";
import { Moment, Value } from "../../ui/values";
import { yaml } from "../../yaml";

export function Checkpoints({ trialId }: { trialId: number }) {
  const shown = useLive(checkpointsQuery(trialId));
  if (shown.error && !shown.data) return <Problem error={shown.error} retry={() => void shown.refetch()} />;
  if (!shown.data) return <Loading what="checkpoints" />;
  if (shown.data.checkpoints.length === 0) return <Empty title="It has saved no checkpoint yet" />;
  const total = shown.data.pagination.total ?? 0;
  return (
    <>
      <Table
        label="Checkpoints"
        rows={shown.data.checkpoints}
        keyOf={(row) => row.uuid}
        columns={[
          { id: "uuid", title: "Checkpoint", cell: (row) => <span title={row.uuid}>{row.uuid.slice(0, 8)}</span> },
          {
            id: "step",
            title: "Step",
            align: "right",
            cell: (row) => count(Number((row.metadata as { steps_completed?: number }).steps_completed ?? 0)),
          },
          { id: "state", title: "State", cell: (row) => row.state.replace("STATE_", "").toLowerCase() },
          {
            id: "metric",
            title: "Metric",
            align: "right",
            cell: (row) => <Value value={row.training?.searcherMetric as number | null | undefined} />,
          },
          { id: "size", title: "Size", align: "right", cell: (row) => bytes(row.resources) },
          {
            id: "files",
            title: "Files",
            align: "right",
            cell: (row) => count(Object.keys(row.resources ?? {}).filter((name) => !name.endsWith("/")).length),
          },
          { id: "at", title: "Saved", cell: (row) => <Moment at={row.reportTime} /> },
        ]}
      />
      {total > shown.data.checkpoints.length && (
        <p className="text-dim">
          The newest {count(shown.data.checkpoints.length)} of {count(total)}.
        </p>
      )}
    </>
  );
}

function bytes(resources: Record<string, string | number> | undefined): string {
  const sum = Object.values(resources ?? {}).reduce<number>((all, size) => all + Number(size), 0);
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(units.length - 1, sum > 0 ? Math.floor(Math.log2(sum) / 10) : 0);
  return `${count(Math.round((sum / 1024 ** power) * 10) / 10)} ${units[power]}`;
}

export function Configuration({ trial }: { trial: Trial }) {
  const shown = useLive(experimentQuery(trial.experimentId), () => true);
  if (shown.error && !shown.data) return <Problem error={shown.error} retry={() => void shown.refetch()} />;
  if (!shown.data) return <Loading what="the configuration" />;
  const { hyperparameters, ...rest } = (shown.data.experiment.config ?? {}) as Record<string, unknown>;
  return (
    <>
      <Text title="Hyperparameters of this trial" text={yaml(trial.hparams)} />
      <Text
        title="Configuration of its experiment"
        text={yaml(hyperparameters === undefined ? rest : { hyperparameters, ...rest })}
      />
    </>
  );
}

function Text({ title, text }: { title: string; text: string }) {
  return (
    <Section title={title} aside={<Copy text={text} />}>
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard.
        tabIndex={0}
        className="overflow-x-auto rounded-md border border-line bg-sunken p-3 font-mono text-sm"
      >
        {text}
      </pre>
    </Section>
  );
}

export function Attempts({ trial }: { trial: Trial }) {
  const shown = useLive(attemptsQuery(trial.id, trial.taskId), () => hasEnded(trial.state));
  if (shown.error && !shown.data) return <Problem error={shown.error} retry={() => void shown.refetch()} />;
  if (!shown.data) return <Loading what="attempts" />;
  if (shown.data.length === 0) return <Empty title="It was not started yet" />;
  const seconds = (from?: string | null, to?: string | null) =>
    from ? (new Date(to ?? Date.now()).getTime() - new Date(from).getTime()) / 1000 : undefined;
  return (
    <Table
      label="Attempts"
      rows={shown.data}
      keyOf={(row) => row.allocationId}
      columns={[
        { id: "attempt", title: "Attempt", cell: (row) => row.allocationId.split(".").pop() },
        { id: "state", title: "State", cell: (row) => row.state.replace("STATE_", "").toLowerCase() },
        { id: "slots", title: "Slots", align: "right", cell: (row) => count(row.slots) },
        { id: "began", title: "Began", cell: (row) => <Moment at={row.startTime} /> },
        {
          id: "took",
          title: "Took",
          align: "right",
          cell: (row) => (
            <span title={row.endTime ? absolute(row.endTime) : undefined}>
              {duration(seconds(row.startTime, row.endTime))}
            </span>
          ),
        },
        { id: "why", title: "Why it ended, or waits", wide: true, cell: (row) => row.exitReason || row.reason || "–" },
      ]}
    />
  );
}
