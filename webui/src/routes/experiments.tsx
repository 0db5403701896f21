/** Experiments, of all projects or of one: as many as there are, sorted and narrowed by the master. */

import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useCallback, useEffect, useMemo, useState } from "react";
import { rememberList } from "../actions/beside";
import { SelectionBar } from "../actions/SelectionBar";
import { useSelection } from "../actions/selection";
import { count } from "../format";
import type { ListSearch } from "../router";
import { written } from "../services/columns";
import { type Experiment, type ExperimentSearch, experimentsQuery, WINDOW } from "../services/experiments";
import { checkFilter } from "../services/filter";
import { meQuery } from "../services/session";
import { STATE_FILTERS } from "../services/states";
import { Button, FIELD } from "../ui/Button";
import { FilterField } from "../ui/FilterField";
import { Grid } from "../ui/Grid";
import { Empty, Loading, Problem } from "../ui/notices";
import { say } from "../ui/overlays";
import { Page } from "../ui/Page";
import { useWindows } from "../ui/windows";
import { submitCommand } from "./home";
import { csvOf, save } from "./table/csv";
import { chooseColumns, useColumns } from "./table/useColumns";
import { Views } from "./table/Views";

const DEFAULT_SORT = "-id";

const all = getRouteApi("/shell/experiments");

export function AllExperiments() {
  return <Experiments title="Experiments" name="Experiments" search={all.useSearch()} />;
}

/** All that the filter finds, as a file. */
function Csv({ search, columns, name }: { search: ExperimentSearch; columns: string[]; name: string }) {
  const client = useQueryClient();
  const [busy, setBusy] = useState(false);
  const download = async () => {
    setBusy(true);
    try {
      save(await csvOf(client, search, columns), `${name.replaceAll(/[^\w-]+/g, "-")}.csv`);
    } catch (error) {
      say({ text: `No file was made: ${error instanceof Error ? error.message : error}` });
    }
    setBusy(false);
  };
  return (
    <Button onClick={() => void download()} disabled={busy} title="All rows that the filter finds, with these columns">
      {busy ? "Loading rows…" : "CSV"}
    </Button>
  );
}

interface ListProps {
  title: ReactNode;
  name: string;
  search: ListSearch;
  projectId?: number;
  /** Above the table. */
  tabs?: ReactNode;
}

/** A table of experiments, as long as there are any. */
export function Experiments({ title, name, search, projectId, tabs }: ListProps) {
  const me = useSuspenseQuery(meQuery).data;
  const navigate = useNavigate();
  const sort = search.sort ?? DEFAULT_SORT;
  const asked = useMemo(
    (): ExperimentSearch => ({
      projectId,
      query: search.q,
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
  const change = (changed: Partial<ListSearch>, replace = false) =>
    void navigate({ to: ".", search: (former: ListSearch) => ({ ...former, ...changed }), replace } as never);
  const columns = useColumns(projectId, search.cols, (cols) => change({ cols }, true));
  const found = useWindows<Experiment>(windowOf, WINDOW);
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
      {tabs}
      <div className="-mb-2 flex flex-wrap items-center gap-2">
        <FilterField
          value={search.q ?? ""}
          label="Filter"
          check={(text, at) => checkFilter(text, at, projectId)}
          onChange={(q, continued) => change({ q: q || undefined }, continued)}
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
        <Views
          views={columns.views}
          projectId={projectId}
          shown={{ ...search, cols: columns.placed.map(written) }}
          onOpen={(to) => void navigate({ to: ".", search: to } as never)}
        />
        <Button onClick={() => chooseColumns(columns)}>Columns</Button>
        <Csv search={asked} columns={columns.placed.map((each) => each.id)} name={name} />
      </div>
      {size > 0 && <SelectionBar chosen={chosen} size={size} total={total} selecting={selecting} />}
      {found.error !== undefined && found.error !== null && found.total === undefined ? (
        <Problem error={found.error} retry={found.retry} />
      ) : found.total === undefined || !columns.ready ? (
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
          columns={columns.drawn}
          minWidth={columns.placed.reduce((sum, each) => sum + each.width, 36)}
          arranging={columns.arranging}
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
