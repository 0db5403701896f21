/** What a table of experiments shows of each; metrics are those of the best trial. */

import { Link } from "@tanstack/react-router";
import { bytes, count } from "../../format";
import { hyperparameterOf, metricOf } from "../../services/columns";
import { type Experiment, experimentsQuery } from "../../services/experiments";
import { StateMark } from "../../ui/State";
import { Dim, Elapsed, Moment, Progress, Value } from "../../ui/values";
import { visible } from "../../visible";
import { type Kind, type Own, placedAt } from "./kind";

const OWN: Record<string, Own<Experiment>> = {
  id: { title: "ID", width: 64, align: "right", cell: (row) => row.id, value: (row) => row.id },
  name: {
    title: "Name",
    width: 240,
    cell: (row) => (
      <Link
        to="/experiments/$experimentId"
        params={{ experimentId: row.id }}
        tabIndex={-1}
        className="hover:underline"
        title={visible(row.name)}
      >
        {visible(row.name)}
        {row.archived && <span className="text-dim"> · archived</span>}
      </Link>
    ),
    value: (row) => row.name,
  },
  state: {
    title: "State",
    width: 130,
    cell: (row) => <StateMark state={row.state} reason={row.reason} />,
    value: (row) => row.state.replace("STATE_", "").toLowerCase(),
  },
  progress: {
    title: "Progress",
    width: 130,
    cell: (row) => <Progress share={row.progress ?? 0} label={`Progress of experiment ${row.id}`} />,
    value: (row) => row.progress,
  },
  searcherMetricsVal: {
    title: "Best metric",
    width: 100,
    align: "right",
    cell: (row) => <Value value={row.bestTrialSearcherMetric} />,
    value: (row) => row.bestTrialSearcherMetric,
  },
  searcherMetric: {
    title: "Metric",
    width: 120,
    cell: (row) => <Dim text={row.searcherMetric} />,
    value: (row) => row.searcherMetric,
  },
  numTrials: {
    title: "Trials",
    width: 70,
    align: "right",
    cell: (row) => count(row.numTrials ?? 0),
    value: (row) => row.numTrials,
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
      <span title="from its submission to its end, or until now">
        <Elapsed seconds={row.duration} asOf={row.asOf} runs={!row.endTime} />
      </span>
    ),
    value: (row) => row.duration,
  },
  endTime: { title: "Ended", width: 100, cell: (row) => <Moment at={row.endTime} />, value: (row) => row.endTime },
  description: {
    title: "Description",
    width: 200,
    cell: (row) => <Dim text={row.description} />,
    value: (row) => row.description,
  },
  tags: {
    title: "Labels",
    width: 140,
    unsorted: true,
    cell: (row) => <Dim text={row.labels.join(", ")} />,
    value: (row) => row.labels.join(", "),
  },
  resourcePool: { title: "Pool", width: 110, cell: (row) => row.resourcePool, value: (row) => row.resourcePool },
  searcherType: { title: "Searcher", width: 120, cell: (row) => row.searcherType, value: (row) => row.searcherType },
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
  forkedFrom: {
    title: "Forked from",
    width: 100,
    align: "right",
    cell: (row) => row.forkedFrom ?? "–",
    value: (row) => row.forkedFrom,
  },
  projectId: {
    title: "Project",
    width: 80,
    align: "right",
    cell: (row) => row.projectId,
    value: (row) => row.projectId,
  },
};

const PINNED = new Set(["id", "name", "state"]);
const USUAL = ["id", "name", "state", "progress", "searcherMetricsVal", "searcherMetric", "numTrials", "user"];

export const EXPERIMENTS: Kind<Experiment> = {
  detail: "experiments",
  noun: "experiment",
  own: OWN,
  usual: [...USUAL, "startTime", "duration"].map((id) => placedAt(OWN, id, PINNED.has(id))),
  query: experimentsQuery,
  metric: (row, column) => metricOf(row.best?.summaryMetrics, column),
  hyperparameter: hyperparameterOf,
  metadata: () => undefined,
};
