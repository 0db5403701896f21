/** The newest line of a trial's output, at the foot of its page: it leads to all of it. */

import { Link } from "@tanstack/react-router";
import { clock } from "../../format";
import { Coloured } from "../../output/Coloured";
import type { Trial } from "../../services/experiments";
import { useLive } from "../../services/live";
import { lastLineQuery } from "../../services/output";
import { hasEnded } from "../../services/states";

export function LastLine({ trial }: { trial: Trial }) {
  const line = useLive(lastLineQuery(trial.id), () => hasEnded(trial.state)).data;
  return (
    <Link
      to="/trials/$trialId"
      params={{ trialId: trial.id }}
      search={{ tab: "logs" }}
      className="sticky bottom-0 -mx-4 mt-auto -mb-4 flex min-h-7 min-w-0 items-center gap-2 border-line border-t bg-raised px-4 font-mono text-sm"
    >
      <span className="sr-only">The newest line of its output: </span>
      {line ? (
        <>
          <span className="shrink-0 text-dim">{clock(line.timestamp)}</span>
          <span className="min-w-0 truncate">
            <Coloured line={line.text} />
          </span>
        </>
      ) : (
        <span className="text-dim">{line === null ? "No output yet" : ""}</span>
      )}
    </Link>
  );
}
