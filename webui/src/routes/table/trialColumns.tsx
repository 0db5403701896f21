/** What a table of all trials shows of each: what it tried, what it reported, and which experiment it is of. */

import { Link } from "@tanstack/react-router";
import { bytes, count } from "../../format";
import { below, metricOf } from "../../services/columns";
import { type ListedTrial, listedTrialsQuery } from "../../services/listedTrials";
import { StateMark } from "../../ui/State";
import { Dim, Elapsed, Moment, Progress, Value } from "../../ui/values";
import { visible } from "../../visible";
import { type Kind, type Own, placedAt } from "./kind";

const OWN: Record<string, Own<ListedTrial>> = {
  id: {
    title: "Trial",
    width: 72,
    align: "right",
    cell: (row) => (
      <Link to="/trials/$trialId" params={{ trialId: row.id }} tabIndex={-1} className="hover:underline">
        {row.id}
      </Link>
    ),
    value: (row) => row.id,
  },
  experimentName: {
    title: "Experiment",
    width: 220,
    cell: ({ experiment, archived }) => (
      <Link
        to="/experiments/$experimentId"
        params={{ experimentId: experiment.id }}
        tabIndex={-1}
        className="hover:underline"
        title={visible(experiment.name)}
      >
        {`${experiment.id} ${visible(experiment.name)}`}
        {archived && <span className="text-dim"> · archived</span>}
      </Link>
    ),
    value: (row) => row.experiment.name,
  },
  state: {
    title: "State",
    width: 130,
    cell: (row) => <StateMark state={row.state} />,
    value: (row) => row.state.replace("STATE_", "").toLowerCase(),
  },
  searcherMetricsVal: {
    title: "Best metric",
    width: 100,
    align: "right",
    cell: (row) => <Value value={row.searcherMetricValue} />,
    value: (row) => row.searcherMetricValue,
  },
  searcherMetric: {
    title: "Metric",
    width: 120,
    cell: (row) => <Dim text={row.experiment.searcherMetric} />,
    value: (row) => row.experiment.searcherMetric,
  },
  user: { title: "Owner", width: 110, cell: (row) => row.username, value: (row) => row.username },
  startTime: {
    title: "Started",
    width: 100,
    cell: (row) => <Moment at={row.startTime} />,
    value: (row) => row.startTime,
  },
  duration: {
    title: "Took",
    width: 100,
    align: "right",
    cell: (row) => (
      <span title="from when it was made to its end, or until now">
        <Elapsed seconds={row.duration} asOf={row.asOf} runs={!row.endTime} />
      </span>
    ),
    value: (row) => row.duration,
  },
  endTime: { title: "Ended", width: 100, cell: (row) => <Moment at={row.endTime} />, value: (row) => row.endTime },
  experimentId: {
    title: "Experiment ID",
    width: 110,
    align: "right",
    cell: (row) => row.experiment.id,
    value: (row) => row.experiment.id,
  },
  experimentDescription: {
    title: "Description",
    width: 200,
    cell: (row) => <Dim text={row.experiment.description} />,
    value: (row) => row.experiment.description,
  },
  experimentProgress: {
    title: "Progress of the experiment",
    width: 140,
    cell: (row) => <Progress share={row.experiment.progress} label={`Progress of the experiment of trial ${row.id}`} />,
    value: (row) => row.experiment.progress,
  },
  tags: {
    title: "Labels",
    width: 140,
    unsorted: true,
    cell: (row) => <Dim text={(row.labels ?? []).join(", ")} />,
    value: (row) => (row.labels ?? []).join(", "),
  },
  resourcePool: {
    title: "Pool",
    width: 110,
    cell: (row) => row.experiment.resourcePool,
    value: (row) => row.experiment.resourcePool,
  },
  searcherType: {
    title: "Searcher",
    width: 120,
    cell: (row) => row.experiment.searcherType,
    value: (row) => row.experiment.searcherType,
  },
  checkpointCount: {
    title: "Checkpoints",
    width: 110,
    align: "right",
    cell: (row) => count(row.checkpointCount),
    value: (row) => row.checkpointCount,
  },
  checkpointSize: {
    title: "Checkpoint size",
    width: 130,
    align: "right",
    cell: (row) => bytes(Number(row.checkpointSize)),
    value: (row) => row.checkpointSize,
  },
  localId: { title: "Number in project", width: 120, cell: (row) => row.localId ?? "–", value: (row) => row.localId },
  projectId: {
    title: "Project",
    width: 80,
    align: "right",
    cell: (row) => row.projectId,
    value: (row) => row.projectId,
  },
};

const PINNED = new Set(["id", "experimentName", "state"]);
const USUAL = [
  "id",
  "experimentName",
  "state",
  "searcherMetricsVal",
  "searcherMetric",
  "user",
  "startTime",
  "duration",
];

export const TRIALS: Kind<ListedTrial> = {
  detail: "trials",
  noun: "trial",
  own: OWN,
  usual: USUAL.map((id) => placedAt(OWN, id, PINNED.has(id))),
  query: listedTrialsQuery,
  metric: (row, column) => metricOf(row.summaryMetrics, column),
  hyperparameter: (row, column) => below(row.hyperparameters, column),
  metadata: (row, column) => below(row.metadata, column),
};
