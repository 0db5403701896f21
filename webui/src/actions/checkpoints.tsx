/** What can be done with a checkpoint: delete its files, register it as a version of a model. */

import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { Suspense } from "react";
import { useCommands } from "../keys/commands";
import { lazy } from "../parts";
import { deleteCheckpoint } from "../services/actions";
import { experimentQuery, type Trial } from "../services/experiments";
import { useLive } from "../services/live";
import { type Checkpoint, checkpointsQuery } from "../services/runs";
import { meQuery } from "../services/session";
import { Button } from "../ui/Button";
import { closeDialog, openDialog, say } from "../ui/overlays";
import { Confirm } from "./Confirm";
import { outcome } from "./perform";
import { mayChange } from "./states";

const RegisterDialog = lazy(() => import("./RegisterDialog"));

export function CheckpointActions({ checkpoint, trial, step }: { checkpoint: Checkpoint; trial: Trial; step: number }) {
  const client = useQueryClient();
  const me = useSuspenseQuery(meQuery).data;
  const experiment = useLive(experimentQuery(trial.experimentId), () => true).data?.experiment;
  const there = checkpoint.state === "STATE_COMPLETED";
  const mayDelete = there && experiment !== undefined && mayChange(me, experiment.userId);
  const short = checkpoint.uuid.slice(0, 8);
  const remove = async () => {
    closeDialog();
    const done = await outcome(
      deleteCheckpoint(checkpoint.uuid).then(() => true),
      `Delete checkpoint ${short}`,
    );
    if (done) say({ text: `Deleting the files of checkpoint ${short}` });
    await client.invalidateQueries({ queryKey: checkpointsQuery(trial.id).queryKey });
  };
  const ask = () =>
    openDialog((close) => (
      <Confirm
        title={`Delete checkpoint ${short}?`}
        names={[`Checkpoint ${checkpoint.uuid} of trial ${trial.id}, at step ${step}`]}
        size={1}
        warning="Its files are deleted for good. What is known about it stays."
        yes="Delete"
        onYes={() => void remove()}
        onNo={close}
      />
    ));
  const register = () =>
    openDialog((close) => (
      <Suspense fallback={null}>
        <RegisterDialog
          checkpointUuid={checkpoint.uuid}
          title={`Register checkpoint ${short}`}
          onClose={close}
          onDone={(model, version) => say({ text: `Registered as version ${version} of ${model}` })}
        />
      </Suspense>
    ));
  useCommands([
    ...(mayDelete ? [{ name: "delete" as const, title: `Delete checkpoint ${short}`, run: ask }] : []),
    ...(there ? [{ title: `Register checkpoint ${short} as a model version`, run: register }] : []),
  ]);
  return (
    <>
      {there && <Button onClick={register}>Register as a model version</Button>}
      {mayDelete && (
        <Button look="danger" onClick={ask}>
          Delete
        </Button>
      )}
    </>
  );
}
