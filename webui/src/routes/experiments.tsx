/** Experiments, of all projects or of one: as many as there are, sorted and narrowed by the master. */

import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useCallback, useEffect, useMemo } from "react";
import { rememberList } from "../actions/beside";
import { SelectionBar } from "../actions/SelectionBar";
import { useSelection } from "../actions/selection";
import { count } from "../format";
import type { ListSearch } from "../router";
import { type Experiment, type ExperimentSearch, experimentsQuery, WINDOW } from "../services/experiments";
import { useLive } from "../services/live";
import { projectQuery } from "../services/projects";
import { meQuery } from "../services/session";
import { STATE_FILTERS } from "../services/states";
import { FIELD } from "../ui/Button";
import { type Column, Grid } from "../ui/Grid";
import { Empty, Loading, Problem } from "../ui/notices";
import { Page } from "../ui/Page";
import { SearchField } from "../ui/SearchField";
import { StateMark } from "../ui/State";
import { Elapsed, Moment, Progress, Value } from "../ui/values";
import { useWindows } from "../ui/windows";
import { submitCommand } from "./home";

const DEFAULT_SORT = "-id";

const COLUMNS: Column<Experiment>[] = [
  { id: "id", title: "ID", width: "64px", align: "right", sort: "id", cell: (row) => row.id },
  {
    id: "name",
    title: "Name",
    width: "minmax(160px, 2fr)",
    sort: "name",
    cell: (row) => (
      <Link
        to="/experiments/$experimentId"
        params={{ experimentId: row.id }}
        tabIndex={-1}
        className="hover:underline"
        title={row.name}
      >
        {row.name}
        {row.archived && <span className="text-dim"> · archived</span>}
      </Link>
    ),
  },
  {
    id: "state",
    title: "State",
    width: "130px",
    sort: "state",
    cell: (row) => <StateMark state={row.state} reason={row.reason} />,
  },
  {
    id: "progress",
    title: "Progress",
    width: "130px",
    sort: "progress",
    cell: (row) => <Progress share={row.progress ?? 0} label={`Progress of experiment ${row.id}`} />,
  },
  {
    id: "best",
    title: "Best metric",
    width: "100px",
    align: "right",
    sort: "searcherMetricsVal",
    cell: (row) => <Value value={row.bestTrialSearcherMetric} />,
  },
  {
    id: "metric",
    title: "Metric",
    width: "minmax(80px, 1fr)",
    sort: "searcherMetric",
    cell: (row) => (
      <span className="text-dim" title={row.searcherMetric}>
        {row.searcherMetric || "–"}
      </span>
    ),
  },
  {
    id: "trials",
    title: "Trials",
    width: "70px",
    align: "right",
    sort: "numTrials",
    cell: (row) => count(row.numTrials ?? 0),
  },
  { id: "owner", title: "Owner", width: "minmax(80px, 1fr)", sort: "user", cell: (row) => row.username },
  { id: "started", title: "Started", width: "100px", sort: "startTime", cell: (row) => <Moment at={row.startTime} /> },
  {
    id: "took",
    title: "Took",
    width: "100px",
    align: "right",
    sort: "duration",
    cell: (row) => (
      <span title="from its submission to its end, or until now">
        <Elapsed seconds={row.duration} asOf={row.asOf} runs={!row.endTime} />
      </span>
    ),
  },
];

const all = getRouteApi("/shell/experiments");
const ofProject = getRouteApi("/shell/projects/$projectId");

export function AllExperiments() {
  return <Experiments title="Experiments" name="Experiments" search={all.useSearch()} />;
}

export function ProjectExperiments() {
  const { projectId } = ofProject.useParams();
  const search = ofProject.useSearch();
  const project = useLive(projectQuery(projectId));
  if (project.error && !project.data) {
    return (
      <Page title={`Project ${projectId}`} name={`Project ${projectId}`}>
        <Problem error={project.error} retry={() => void project.refetch()} />
      </Page>
    );
  }
  const name = project.data ? `${project.data.workspaceName} / ${project.data.name}` : `Project ${projectId}`;
  return <Experiments title={name} name={name} search={search} projectId={projectId} />;
}

interface ListProps {
  title: ReactNode;
  name: string;
  search: ListSearch;
  projectId?: number;
}

function Experiments({ title, name, search, projectId }: ListProps) {
  const me = useSuspenseQuery(meQuery).data;
  const navigate = useNavigate();
  const sort = search.sort ?? DEFAULT_SORT;
  const asked = useMemo(
    (): ExperimentSearch => ({
      projectId,
      name: search.q,
      states: search.state ? STATE_FILTERS[search.state]?.states : undefined,
      userId: search.owner === "me" ? me.id : undefined,
      archived: search.archived,
      sort,
    }),
    [projectId, search.q, search.state, search.owner, search.archived, sort, me.id],
  );
  // What is opened from here has these beside it.
  useEffect(() => rememberList(asked), [asked]);
  const windowOf = useCallback((offset: number) => experimentsQuery(asked, offset, WINDOW), [asked]);
  const found = useWindows<Experiment>(windowOf, WINDOW);
  const change = (changed: Partial<ListSearch>, replace = false) =>
    void navigate({ to: ".", search: (former: ListSearch) => ({ ...former, ...changed }), replace } as never);
  const total = found.total ?? 0;
  const { selecting, size, chosen } = useSelection(asked, total, found);
  const narrowed = search.q || search.state || search.owner;

  return (
    <Page
      title={title}
      name={name}
      full
      aside={
        <p className="text-dim" aria-live="polite">
          {found.total === undefined ? "" : found.total === 1 ? "1 experiment" : `${count(found.total)} experiments`}
        </p>
      }
    >
      <div className="-mb-2 flex flex-wrap items-center gap-2">
        <SearchField
          value={search.q ?? ""}
          label="Part of a name"
          onChange={(q) => change({ q: q || undefined }, true)}
        />
        <select
          aria-label="State"
          className={FIELD}
          value={search.state ?? ""}
          onChange={(event) => change({ state: event.target.value || undefined })}
        >
          <option value="">Any state</option>
          {Object.entries(STATE_FILTERS).map(([key, { word }]) => (
            <option key={key} value={key}>
              {word}
            </option>
          ))}
        </select>
        <select
          aria-label="Owner"
          className={FIELD}
          value={search.owner ?? ""}
          onChange={(event) => change({ owner: event.target.value === "me" ? "me" : undefined })}
        >
          <option value="">Of everyone</option>
          <option value="me">Mine</option>
        </select>
        <label className="flex min-h-7 items-center gap-1.5">
          <input
            type="checkbox"
            className="size-4 accent-(--accent)"
            checked={search.archived ?? false}
            onChange={(event) => change({ archived: event.target.checked || undefined })}
          />
          Archived, too
        </label>
      </div>
      {size > 0 && <SelectionBar chosen={chosen} size={size} total={total} selecting={selecting} />}
      {found.error !== undefined && found.error !== null && found.total === undefined ? (
        <Problem error={found.error} retry={found.retry} />
      ) : found.total === undefined ? (
        <Loading what="experiments" />
      ) : found.total === 0 && narrowed ? (
        <Empty title="No experiment is like this">
          <button
            type="button"
            className="text-accent underline"
            onClick={() => change({ q: undefined, state: undefined, owner: undefined })}
          >
            Show all
          </button>
        </Empty>
      ) : found.total === 0 ? (
        <Empty title="There are no experiments yet" command={submitCommand()}>
          Where a configuration and its code are, this submits them to this cluster:
        </Empty>
      ) : (
        <Grid
          label={name}
          columns={COLUMNS}
          minWidth={960}
          total={found.total}
          rowAt={found.rowAt}
          keyOf={(row) => row.id}
          onView={found.onView}
          stale={found.stale}
          sort={sort}
          onSort={(to) => change({ sort: to === DEFAULT_SORT ? undefined : to })}
          onOpen={(row) => void navigate({ to: "/experiments/$experimentId", params: { experimentId: row.id } })}
          selecting={selecting}
        />
      )}
    </Page>
  );
}
