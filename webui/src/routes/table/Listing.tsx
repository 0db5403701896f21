/** A table of experiments or of trials, with all that narrows, sorts and arranges it; what is asked stands in the address. */

import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import type { ListSearch } from "../../addresses";
import { count } from "../../format";
import { useCommands } from "../../keys/commands";
import { type Detail, written } from "../../services/columns";
import { type ExperimentSearch, submitCommand } from "../../services/experiments";
import { checkFilter } from "../../services/filter";
import { meQuery, type User } from "../../services/session";
import { type Settings, settingsQuery } from "../../services/settings";
import { STATE_FILTERS } from "../../services/stateFilters";
import { Button, FIELD } from "../../ui/Button";
import { FilterField } from "../../ui/FilterField";
import { Grid, type Selecting } from "../../ui/Grid";
import { Empty, Loading, Problem } from "../../ui/notices";
import { Page } from "../../ui/Page";
import type { useWindows } from "../../ui/windows";
import { metricsAmong } from "./columns";
import { buildFilter } from "./FilterBuilder";
import type { Kind } from "./kind";
import { chooseSorts } from "./SortDialog";
import { TableMenu } from "./TableMenu";
import { chooseColumns, placedIn, useColumns } from "./useColumns";
import { Views } from "./Views";

const DEFAULT_SORT = "-id";

/** What an address asks for. */
export function useAsked<R extends { id: number }>(
  kind: Kind<R>,
  search: ListSearch,
  projectId: number | undefined,
): ExperimentSearch {
  const me = useSuspenseQuery(meQuery).data;
  const settings = useQuery(settingsQuery).data ?? NONE;
  const asked = askedOf(kind, search, projectId, me, settings);
  const key = JSON.stringify(asked);
  return useMemo(() => asked, [key]);
}

const NONE: Settings = {};

export function askedOf<R extends { id: number }>(
  kind: Kind<R>,
  search: ListSearch,
  projectId: number | undefined,
  me: User,
  settings: Settings,
): ExperimentSearch {
  return {
    metrics: metricsAmong(placedIn(kind, settings, projectId, search.cols)),
    projectId,
    query: search.q,
    states: search.state ? STATE_FILTERS[search.state]?.states : undefined,
    userId: search.owner === "me" ? me.id : undefined,
    archived: search.archived,
    sort: search.sort ?? DEFAULT_SORT,
  };
}

interface ListingProps<R extends { id: number }> {
  title: ReactNode;
  name: string;
  search: ListSearch;
  projectId?: number;
  kind: Kind<R>;
  asked: ExperimentSearch;
  found: ReturnType<typeof useWindows<R>>;
  selecting: Selecting<R>;
  /** Above the table. */
  tabs?: ReactNode;
  /** What can be done to what is selected. */
  bar: ReactNode;
}

type Change = (changed: Partial<ListSearch>, replace?: boolean) => void;

export function Listing<R extends { id: number }>(props: ListingProps<R>) {
  const { name, search, projectId, kind, asked, found, selecting, bar } = props;
  const navigate = useNavigate();
  const change: Change = (changed, replace = false) =>
    void navigate({ to: ".", search: (former: ListSearch) => ({ ...former, ...changed }), replace } as never);
  const columns = useColumns(kind, projectId, search.cols, (cols) => change({ cols }, true));
  const { total } = found;
  const nouns = `${kind.noun}s`;
  const sortBy = (to: string) => change({ sort: to === DEFAULT_SORT ? undefined : to });
  const build = () => buildFilter(kind, projectId, search.q ?? "", (q) => change({ q: q || undefined }));
  const sort = () => chooseSorts(kind, projectId, asked.sort, sortBy);
  const other = kind.detail === "trials" ? "experiments" : "trials";
  useCommands([
    { title: "Build a filter", run: build },
    { title: "Choose columns", run: () => chooseColumns(columns) },
    { title: "Sort by several columns", run: sort },
    {
      title: other === "trials" ? "Show all trials as rows" : "Show experiments as rows",
      run: () => change(detailed(other)),
    },
  ]);
  return (
    <Page
      title={props.title}
      name={name}
      full
      aside={
        <p className="text-dim" aria-live="polite">
          {total === undefined ? "" : total === 1 ? `1 ${kind.noun}` : `${count(total)} ${nouns}`}
        </p>
      }
    >
      {props.tabs}
      <div className="-mb-2 flex flex-wrap items-center gap-2">
        <DetailChoice detail={kind.detail} change={change} />
        <FilterField
          value={search.q ?? ""}
          label="Filter"
          check={(text, at) => checkFilter(text, at, { projectId, detail: kind.detail })}
          onChange={(q, continued) => change({ q: q || undefined }, continued)}
        />
        <Button onClick={build} title="Build the filter from conditions and groups">
          Build…
        </Button>
        <Narrowing search={search} change={change} />
        <Views
          views={columns.views}
          projectId={projectId}
          shown={{ ...search, cols: columns.placed.map(written) }}
          onOpen={(to) => void navigate({ to: ".", search: to } as never)}
        />
        <Button onClick={() => chooseColumns(columns)}>Columns</Button>
        <Button onClick={sort}>Sort</Button>
        <TableMenu columns={columns} asked={asked} name={name} total={total ?? 0} selecting={selecting} />
      </div>
      {bar}
      {found.error !== undefined && found.error !== null && total === undefined ? (
        <>
          <Problem error={found.error} retry={found.retry} />
          {search.sort && (
            <div>
              <Button onClick={() => sortBy(DEFAULT_SORT)}>Default order</Button>
            </div>
          )}
        </>
      ) : total === undefined || !columns.ready ? (
        <Loading what={nouns} />
      ) : total === 0 ? (
        <Nothing noun={kind.noun} search={search} change={change} />
      ) : (
        <Grid
          label={name}
          columns={columns.drawn}
          minWidth={columns.placed.reduce((sum, each) => sum + each.width, 36)}
          arranging={columns.arranging}
          total={total}
          rowAt={found.rowAt}
          keyOf={(row) => row.id}
          onView={found.onView}
          stale={found.stale}
          sort={asked.sort}
          manySorts
          onSort={sortBy}
          onOpen={(row) =>
            void navigate(
              kind.detail === "trials"
                ? { to: "/trials/$trialId", params: { trialId: row.id } }
                : { to: "/experiments/$experimentId", params: { experimentId: row.id } },
            )
          }
          selecting={selecting}
        />
      )}
    </Page>
  );
}

/** Columns and orders of the one are not those of the other; the filter stays. */
function detailed(detail: Detail): Partial<ListSearch> {
  return { rows: detail === "trials" ? "trials" : undefined, cols: undefined, sort: undefined };
}

/** What a row is. */
function DetailChoice({ detail, change }: { detail: Detail; change: Change }) {
  return (
    <select
      aria-label="Rows"
      className={FIELD}
      value={detail}
      onChange={(event) => change(detailed(event.target.value === "trials" ? "trials" : "experiments"))}
    >
      <option value="experiments">Experiments</option>
      <option value="trials">All trials</option>
    </select>
  );
}

function Narrowing({ search, change }: { search: ListSearch; change: Change }) {
  return (
    <>
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
        <option value="">Everyone's</option>
        <option value="me">Mine</option>
      </select>
      <label className="flex min-h-7 items-center gap-1.5">
        <input
          type="checkbox"
          className="size-4 accent-(--accent)"
          checked={search.archived ?? false}
          onChange={(event) => change({ archived: event.target.checked || undefined })}
        />
        Include archived
      </label>
    </>
  );
}

function Nothing({ noun, search, change }: { noun: string; search: ListSearch; change: Change }) {
  if (search.q || search.state || search.owner) {
    return (
      <Empty title={`No matching ${noun}s`}>
        <button
          type="button"
          className="text-accent underline"
          onClick={() => change({ q: undefined, state: undefined, owner: undefined })}
        >
          Show all
        </button>
      </Empty>
    );
  }
  return (
    <Empty title={`There are no ${noun}s yet`} command={submitCommand()}>
      <Link to="/experiments/new" className="text-accent underline">
        Create one here
      </Link>
      , from a script or a folder. Or run this where the configuration and the code are:
    </Empty>
  );
}
