/** What happened to a trial, the newest first, and its attempts. */

import { Link } from "@tanstack/react-router";
import { absolute, count, duration } from "../../format";
import type { Trial } from "../../services/experiments";
import { useLive } from "../../services/live";
import { attemptsQuery } from "../../services/runs";
import { hasEnded } from "../../services/states";
import { eventsQuery } from "../../services/trials";
import { Empty, Loading, Problem } from "../../ui/notices";
import { Section } from "../../ui/Page";
import { Table } from "../../ui/Table";
import { Moment } from "../../ui/values";

export function Events({ trial }: { trial: Trial }) {
  return (
    <>
      <Attempts trial={trial} />
      <Happened trial={trial} />
    </>
  );
}

function Happened({ trial }: { trial: Trial }) {
  const shown = useLive(eventsQuery(trial.id), () => hasEnded(trial.state));
  return (
    <Section title="What happened">
      {shown.error && !shown.data ? (
        <Problem error={shown.error} retry={() => void shown.refetch()} />
      ) : !shown.data ? (
        <Loading what="what happened" />
      ) : (
        <Table
          label="Events"
          rows={shown.data.map((event, place) => ({ ...event, place }))}
          keyOf={(row) => row.place}
          columns={[
            { id: "at", title: "When", cell: (row) => <Moment at={row.time} /> },
            { id: "attempt", title: "Attempt", align: "right", cell: (row) => row.runId || "–" },
            {
              id: "what",
              title: "What happened, and why",
              wide: true,
              cell: (row) => (
                <span title={row.sentence}>
                  {row.kind === "CHECKPOINT" ? (
                    <Link
                      to="/trials/$trialId"
                      params={{ trialId: trial.id }}
                      search={{ tab: "checkpoints", checkpoint: row.checkpointUuid }}
                      className="hover:underline"
                    >
                      {row.sentence}
                    </Link>
                  ) : (
                    row.sentence
                  )}
                </span>
              ),
            },
          ]}
        />
      )}
    </Section>
  );
}

function Attempts({ trial }: { trial: Trial }) {
  const shown = useLive(attemptsQuery(trial.id, trial.taskIds), () => hasEnded(trial.state));
  if (shown.error && !shown.data) return <Problem error={shown.error} retry={() => void shown.refetch()} />;
  if (!shown.data) return <Loading what="attempts" />;
  if (shown.data.length === 0) return <Empty title="Not started yet" />;
  const seconds = (from?: string | null, to?: string | null) =>
    from ? (new Date(to ?? Date.now()).getTime() - new Date(from).getTime()) / 1000 : undefined;
  return (
    <Section title="Attempts">
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
          {
            id: "why",
            title: "Why it ended or is waiting",
            wide: true,
            cell: (row) => row.exitReason || row.reason || "–",
          },
        ]}
      />
    </Section>
  );
}
