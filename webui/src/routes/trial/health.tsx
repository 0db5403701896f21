/** Whether a trial is well: a sentence of the master's, with links to what shows it, and what else holds. */

import { Link } from "@tanstack/react-router";
import { count } from "../../format";
import { useLive } from "../../services/live";
import type { Tone } from "../../services/states";
import { type Finding, type Health, healthQuery } from "../../services/trials";
import { useAgainIn } from "../../ui/again";
import { TONES } from "../../ui/State";

const LOOKS: Record<Finding["kind"], { shape: string; tone: Tone; border: string }> = {
  FAILED: { shape: "✕", tone: "bad", border: "border-bad" },
  HUNG: { shape: "!", tone: "bad", border: "border-bad" },
  STALLED: { shape: "!", tone: "wait", border: "border-wait" },
  NOT_FINITE: { shape: "!", tone: "bad", border: "border-bad" },
  DIVERGING: { shape: "!", tone: "bad", border: "border-bad" },
  IDLE_GPUS: { shape: "!", tone: "wait", border: "border-wait" },
  WAITING: { shape: "◷", tone: "wait", border: "border-line" },
  PAUSED: { shape: "‖", tone: "off", border: "border-line" },
  CANCELED: { shape: "⊘", tone: "off", border: "border-line" },
  COMPLETED: { shape: "✓", tone: "ok", border: "border-line" },
  RESTARTED: { shape: "↻", tone: "wait", border: "border-line" },
  HEALTHY: { shape: "✓", tone: "ok", border: "border-line" },
};

/** As it is now. */
export function useHealth(trialId: number) {
  const asked = useLive(healthQuery(trialId));
  useAgainIn(asked.data?.silentIn, asked.dataUpdatedAt, asked.refetch);
  return asked;
}

export function Findings({ trialId }: { trialId: number }) {
  const health = useHealth(trialId).data;
  if (!health) return <div className="min-h-9" />;
  const [first, ...others] = health.findings;
  if (!first) return null;
  const look = LOOKS[first.kind];
  return (
    <section aria-label="Health" className={`flex flex-col gap-1 rounded-md border px-3 py-2 ${look.border}`}>
      <Sentence trialId={trialId} finding={first} health={health} strong />
      {others.map((finding) => (
        <Sentence key={finding.kind} trialId={trialId} finding={finding} health={health} />
      ))}
    </section>
  );
}

interface SentenceProps {
  trialId: number;
  finding: Finding;
  health: Health;
  strong?: boolean;
}

function Sentence({ trialId, finding, health, strong = false }: SentenceProps) {
  const { shape, tone } = LOOKS[finding.kind];
  const { sentence } = finding;
  // Where nothing of it is the same for every trial, all of it stands out.
  const head = strong ? finding.head || sentence : "";
  return (
    <p className="break-words">
      <span className={strong ? `font-semibold ${TONES[tone]}` : TONES[tone]}>
        <span aria-hidden="true">{shape} </span>
        {head}
      </span>
      {sentence.slice(head.length)} <Shown trialId={trialId} finding={finding} health={health} />
    </p>
  );
}

/** Leads to what shows it. */
function Shown({ trialId, finding, health }: Omit<SentenceProps, "strong">) {
  const look = "text-accent underline";
  const to = "/trials/$trialId" as const;
  const params = { trialId };
  if (finding.evidence === "LINE") {
    if (finding.line === null || finding.line === undefined) {
      if (!health.lines) return null;
      return (
        <Link to={to} params={params} search={{ tab: "logs" }} className={look}>
          output
        </Link>
      );
    }
    return (
      <Link to={to} params={params} search={{ tab: "logs", line: finding.line + 1 }} className={look}>
        line {count(finding.line + 1)}
      </Link>
    );
  }
  if (finding.evidence === "METRIC" && finding.metric) {
    return (
      <Link to={to} params={params} search={{ tab: "metrics", metric: finding.metric }} className={look}>
        chart
      </Link>
    );
  }
  if (finding.evidence === "SYSTEM") {
    return (
      <Link to={to} params={params} search={{ tab: "system" }} className={look}>
        system
      </Link>
    );
  }
  if (finding.evidence === "ATTEMPTS") {
    return (
      <Link to={to} params={params} search={{ tab: "events" }} className={look}>
        events
      </Link>
    );
  }
  return null;
}
