import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { count } from "../../format";
import type { Trial } from "../../services/experiments";
import { failureQuery } from "../../services/output";

/** Why a trial failed, in a sentence, with the line of its output that shows it; of others why they wait. */
export function Verdict({ trial }: { trial: Trial }) {
  const failed = trial.state === "STATE_ERROR";
  const failure = useQuery({ ...failureQuery(trial.id), enabled: failed }).data;
  if (!failed) return trial.reason ? <p className="break-words">{trial.reason}</p> : null;
  const line = failure?.line;
  return (
    <p className="break-words rounded-md border border-bad px-3 py-2">
      <span className="font-semibold text-bad">✕ Failed</span>
      {trial.reason && `: ${trial.reason}`}{" "}
      {line && (
        <Link
          to="/trials/$trialId"
          params={{ trialId: trial.id }}
          search={{ tab: "logs", line: line.number + 1 }}
          className="text-accent underline"
        >
          line {count(line.number + 1)}
        </Link>
      )}
    </p>
  );
}
