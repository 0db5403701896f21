/** What does not go on by itself: what hangs, what failed, what waits for long; each with its reason, and a link to it. */

import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { type Experiment, type ExperimentSearch, experimentsQuery } from "../../services/experiments";
import { useLive } from "../../services/live";
import { stalledQuery } from "../../services/trials";
import { useAgainIn } from "../../ui/again";
import { Loading, Problem } from "../../ui/notices";
import { useNow } from "../../ui/now";
import { Section } from "../../ui/Page";
import { StateMark, TONES } from "../../ui/State";
import { Moment } from "../../ui/values";
import { visible } from "../../visible";

/** Of each kind. */
const SHOWN = 6;
/** Shorter waits need nobody, nor does what failed before that. */
const LONG_MS = 600_000;
const LATELY_MS = 7 * 86_400_000;

export function Attention(props: { userId: number; waiting: ExperimentSearch; failed: ExperimentSearch }) {
  const stalled = useLive(stalledQuery(props.userId));
  useAgainIn(stalled.data?.nextIn, stalled.dataUpdatedAt, stalled.refetch);
  const failed = useLive(experimentsQuery(props.failed, 0, SHOWN));
  // Those that wait for longest come first.
  const waiting = useLive(experimentsQuery(props.waiting, 0, SHOWN));
  const now = useNow(60_000);
  const error = stalled.error ?? failed.error ?? waiting.error;
  if (!stalled.data || !failed.data || !waiting.data) {
    return (
      <Section title="Needs attention">{error ? <Problem error={error} /> : <Loading what="what needs you" />}</Section>
    );
  }
  const long = waiting.data.rows.filter((row) => now - Date.parse(row.startTime) > LONG_MS);
  const lately = failed.data.rows.filter((row) => now - Date.parse(row.endTime ?? "") < LATELY_MS);
  const rows = [
    ...stalled.data.trials.map((trial) => (
      <Row
        key={`t${trial.trialId}`}
        mark={<span className={TONES.wait}>! Stalled</span>}
        link={
          <Link
            to="/trials/$trialId"
            params={{ trialId: trial.trialId }}
            className="min-w-0 truncate hover:underline"
            title={visible(trial.name)}
          >
            <span className="text-dim">{trial.experimentId}</span> {visible(trial.name)}
          </Link>
        }
        reason={trial.sentence}
      />
    )),
    ...lately.map((row) => <Of key={row.id} experiment={row} at={row.endTime} />),
    ...long.map((row) => <Of key={row.id} experiment={row} at={row.startTime} />),
  ];
  return (
    <Section title="Needs attention">
      {rows.length === 0 ? (
        <p className="rounded-md border border-line border-dashed p-3 text-dim">
          Nothing of yours has failed recently, is stuck, or has been waiting long.
        </p>
      ) : (
        <ul aria-label="Needs attention" className="overflow-hidden rounded-md border border-line">
          {rows}
        </ul>
      )}
      <p className="flex flex-wrap gap-x-4">
        <All what="failed" state="error" total={failed.data.total} shown={lately.length} />
        <All what="waiting" state="queued" total={waiting.data.total} shown={long.length} />
      </p>
    </Section>
  );
}

function All({ what, state, total, shown }: { what: string; state: string; total: number; shown: number }) {
  if (total <= shown) return null;
  return (
    <Link to="/experiments" search={{ state, owner: "me" }} className="text-accent underline">
      All {total} {what}
    </Link>
  );
}

function Of({ experiment, at }: { experiment: Experiment; at?: string | null }) {
  const reason = experiment.reason || "no reason was given";
  return (
    <Row
      mark={<StateMark state={experiment.state} />}
      link={
        <Link
          to="/experiments/$experimentId"
          params={{ experimentId: experiment.id }}
          className="min-w-0 truncate hover:underline"
          title={visible(experiment.name)}
        >
          <span className="text-dim">{experiment.id}</span> {visible(experiment.name)}
        </Link>
      }
      reason={reason}
      at={<Moment at={at} />}
    />
  );
}

function Row({ mark, link, reason, at }: { mark: ReactNode; link: ReactNode; reason: string; at?: ReactNode }) {
  return (
    <li className="grid min-h-10 grid-cols-[minmax(0,1fr)_auto] items-center gap-x-3 gap-y-1 border-line border-b px-3 py-2 last:border-b-0 lg:grid-cols-[minmax(0,1fr)_90px_minmax(0,2fr)_80px]">
      {link}
      {mark}
      <span className="col-span-2 min-w-0 break-words text-dim lg:col-span-1">{reason}</span>
      <span className="hidden text-right text-dim lg:inline">{at}</span>
    </li>
  );
}
