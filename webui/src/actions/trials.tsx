/** What can be done to a trial; those beside it in its experiment. */

import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type Command, useCommands } from "../keys/commands";
import { keysOf } from "../keys/table";
import { killTrial } from "../services/actions";
import { type Experiment, experimentQuery, type Trial } from "../services/experiments";
import { useLive } from "../services/live";
import { meQuery } from "../services/session";
import { Button } from "../ui/Button";
import { closeDialog, openDialog, say } from "../ui/overlays";
import { Confirm } from "./Confirm";
import { outcome, refresh } from "./perform";
import { lives, mayChange, whyNotContinued } from "./states";

/** What has completed stays so. */
const BROKEN_OFF: ReadonlySet<Trial["state"]> = new Set(["STATE_CANCELED", "STATE_ERROR"]);

export function TrialActions({ trial }: { trial: Trial }) {
  const client = useQueryClient();
  const me = useSuspenseQuery(meQuery).data;
  const experiment = useLive(experimentQuery(trial.experimentId), () => true).data?.experiment;
  const mayKill = experiment !== undefined && mayChange(me, experiment.userId) && lives(trial.state);
  const kill = async () => {
    closeDialog();
    const done = await outcome(
      killTrial(trial.id).then(() => true),
      `Kill trial ${trial.id}`,
    );
    if (done) say({ text: `Killing trial ${trial.id}` });
    await refresh(client);
  };
  const ask = () =>
    openDialog((close) => (
      <Confirm
        title={`Kill trial ${trial.id}?`}
        names={[`Trial ${trial.id} of experiment ${trial.experimentId} ${experiment?.name ?? ""}`]}
        size={1}
        warning="It ends at once, and what it did since its latest checkpoint is lost. The search goes on without it."
        yes="Kill"
        onYes={() => void kill()}
        onNo={close}
      />
    ));
  const killing: Command[] = mayKill ? [{ name: "kill", title: `Kill trial ${trial.id}`, run: ask }] : [];
  useCommands([...killing, ...useBeside(trial, experiment?.trialIds ?? [])]);
  if (experiment && BROKEN_OFF.has(trial.state)) return <GoingOn experiment={experiment} />;
  if (!mayKill) return null;
  return (
    <Button look="danger" onClick={ask} aria-keyshortcuts={keysOf("kill")}>
      Kill
    </Button>
  );
}

/** Trials go on with their experiment: where that is done, or why it cannot be. */
function GoingOn({ experiment }: { experiment: Experiment }) {
  const me = useSuspenseQuery(meQuery).data;
  const why = whyNotContinued(experiment, mayChange(me, experiment.userId));
  return (
    <p className="text-dim">
      {why ? (
        `Trials are continued with their experiment. ${why}`
      ) : (
        <>
          To train it further,{" "}
          <Link
            to="/experiments/$experimentId"
            params={{ experimentId: experiment.id }}
            className="underline hover:text-text"
          >
            continue its experiment
          </Link>
          .
        </>
      )}
    </p>
  );
}

function useBeside(trial: Trial, ids: number[]): Command[] {
  const navigate = useNavigate();
  const sorted = [...ids].sort((a, b) => a - b);
  const go = (step: 1 | -1) => {
    const trialId = sorted[sorted.indexOf(trial.id) + step];
    if (trialId !== undefined) void navigate({ to: "/trials/$trialId", params: { trialId } });
    else say({ text: `This is the ${step > 0 ? "last" : "first"} trial of experiment ${trial.experimentId}` });
  };
  return [
    { name: "previous", title: "The previous trial", run: () => go(-1) },
    { name: "next", title: "The next trial", run: () => go(1) },
  ];
}
