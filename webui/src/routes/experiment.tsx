/** One experiment: how it stands, its search, and all of its trials. */

import { useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Suspense } from "react";
import { beside } from "../actions/beside";
import { ExperimentActions } from "../actions/experiments";
import { outcome } from "../actions/perform";
import { count } from "../format";
import { useCommands } from "../keys/commands";
import { lazy } from "../parts";
import { type Experiment, experimentQuery } from "../services/experiments";
import { useLive } from "../services/live";
import { hasEnded } from "../services/states";
import { Facts } from "../ui/Facts";
import { Loading, Problem } from "../ui/notices";
import { say } from "../ui/overlays";
import { Page } from "../ui/Page";
import { StateMark } from "../ui/State";
import { Moment, Progress, Ran, Value } from "../ui/values";

/** Each comes where it is shown. */
const Search = lazy(() => import("../search/Search"));
const TrialOverview = lazy(() => import("./trial").then(({ TrialOverview }) => ({ default: TrialOverview })));

const route = getRouteApi("/shell/experiments/$experimentId");

export function ExperimentPage() {
  const { experimentId } = route.useParams();
  const shown = useLive(experimentQuery(experimentId), (data) => hasEnded(data.experiment.state));
  const name = `Experiment ${experimentId}`;
  useBeside(experimentId);
  if (!shown.data || shown.data.experiment.id !== experimentId) {
    return (
      <Page title={name} name={name}>
        {shown.error ? (
          <Problem error={shown.error} retry={() => void shown.refetch()} />
        ) : (
          <Loading what="the experiment" />
        )}
      </Page>
    );
  }
  const { experiment, jobSummary } = shown.data;
  const only = experiment.numTrials === 1 ? experiment.trialIds?.[0] : undefined;
  return (
    <Page title={experiment.name} name={experiment.name} aside={<About experiment={experiment} />}>
      {experiment.reason && <p className="break-words">{experiment.reason}</p>}
      <Written experiment={experiment} />
      <Facts
        facts={[
          ["Progress", <Progress key="p" share={experiment.progress ?? 0} label="Progress" />],
          [
            `Best ${experiment.searcherMetric || "metric"}`,
            <Value key="b" value={experiment.bestTrialSearcherMetric} />,
          ],
          ["Trials", count(experiment.numTrials ?? 0)],
          ["Search", experiment.searcherType || "–"],
          ["Pool", experiment.resourcePool || "–"],
          ["Ahead in queue", jobSummary && jobSummary.jobsAhead >= 0 ? count(jobSummary.jobsAhead) : "–"],
          ["Ran for", <Ran key="r" of={experiment} />],
          ["Checkpoints", count(experiment.checkpointCount ?? 0)],
        ]}
      />
      {only !== undefined ? (
        <Suspense fallback={<Loading what="its trial" />}>
          <TrialOverview trialId={only} />
        </Suspense>
      ) : (
        <Suspense fallback={<Loading what="the search" />}>
          <Search experiment={experiment} />
        </Suspense>
      )}
    </Page>
  );
}

/** Leads to the experiments beside it in the list. */
function useBeside(id: number): void {
  const client = useQueryClient();
  const navigate = useNavigate();
  const go = async (step: 1 | -1) => {
    const experimentId = await beside(client, id, step);
    if (experimentId) await navigate({ to: "/experiments/$experimentId", params: { experimentId } });
    else say({ text: step > 0 ? "This is the last in the list" : "This is the first in the list" });
  };
  const ask = async (step: 1 | -1) => void (await outcome(go(step), "Go to the experiment beside"));
  useCommands([
    { name: "previous", title: "The previous experiment", run: () => void ask(-1) },
    { name: "next", title: "The next experiment", run: () => void ask(1) },
  ]);
}

function About({ experiment }: { experiment: Experiment }) {
  return (
    <>
      <StateMark state={experiment.state} />
      <p className="text-dim">
        Experiment {experiment.id} of {experiment.username}, in{" "}
        <Link
          to="/projects/$projectId"
          params={{ projectId: experiment.projectId }}
          className="underline hover:text-text"
        >
          {experiment.projectName}
        </Link>
        , started <Moment at={experiment.startTime} />
        {experiment.endTime && (
          <>
            , ended <Moment at={experiment.endTime} />
          </>
        )}
      </p>
      <ExperimentActions experiment={experiment} />
    </>
  );
}

/** What people wrote about it. */
function Written({ experiment }: { experiment: Experiment }) {
  const { description, labels = [], notes } = experiment;
  if (!description && labels.length === 0 && !notes) return null;
  return (
    <div className="flex min-w-0 flex-col gap-2">
      {description && <p className="break-words">{description}</p>}
      {labels.length > 0 && (
        <ul aria-label="Labels" className="flex flex-wrap gap-1.5">
          {labels.map((label) => (
            <li key={label} className="max-w-full truncate rounded-md border border-line bg-raised px-2">
              {label}
            </li>
          ))}
        </ul>
      )}
      {notes && <p className="max-h-40 overflow-y-auto whitespace-pre-wrap break-words text-dim">{notes}</p>}
    </div>
  );
}
