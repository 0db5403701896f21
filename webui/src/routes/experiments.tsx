/** Experiments, or all of their trials, of all projects or of one: as many as there are, sorted and narrowed by the master. */

import type { QueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type ReactNode, useCallback, useEffect } from "react";
import { rememberList } from "../actions/beside";
import { TrialsBar } from "../actions/listedTrials";
import { usePicked } from "../actions/picked";
import { SelectionBar } from "../actions/SelectionBar";
import { useSelection } from "../actions/selection";
import type { ListSearch } from "../addresses";
import { type Experiment, WINDOW } from "../services/experiments";
import { type ListedTrial, listedTrialsQuery } from "../services/listedTrials";
import { ahead } from "../services/live";
import { meQuery } from "../services/session";
import { settingsQuery } from "../services/settings";
import { useWindows } from "../ui/windows";
import { EXPERIMENTS } from "./table/experimentColumns";
import { askedOf, Listing, useAsked } from "./table/Listing";
import { TRIALS } from "./table/trialColumns";

const all = getRouteApi("/shell/experiments");

/** Ask for the first rows and the columns, while the page itself is still to be drawn. */
export function lookAhead(client: QueryClient, search: ListSearch, projectId?: number): void {
  const me = client.getQueryData(meQuery.queryKey);
  if (!me) return;
  const settings = client.getQueryData(settingsQuery.queryKey) ?? {};
  if (search.rows === "trials")
    ahead(client, listedTrialsQuery(askedOf(TRIALS, search, projectId, me, settings), 0, WINDOW));
  else ahead(client, EXPERIMENTS.query(askedOf(EXPERIMENTS, search, projectId, me, settings), 0, WINDOW));
  void client.prefetchQuery(settingsQuery);
}

export function AllExperiments() {
  const search = all.useSearch();
  const name = search.rows ? "Trials" : "Experiments";
  return <Rows title={name} name={name} search={search} />;
}

interface RowsProps {
  title: ReactNode;
  name: string;
  search: ListSearch;
  projectId?: number;
  /** Above the table. */
  tabs?: ReactNode;
}

/** One table, with two rows of detail. */
export function Rows(props: RowsProps) {
  return props.search.rows === "trials" ? <TrialRows {...props} /> : <ExperimentRows {...props} />;
}

function ExperimentRows(props: RowsProps) {
  const asked = useAsked(EXPERIMENTS, props.search, props.projectId);
  // What is opened from here has these beside it.
  useEffect(() => rememberList(asked), [asked]);
  const windowOf = useCallback((offset: number) => EXPERIMENTS.query(asked, offset, WINDOW), [asked]);
  const found = useWindows<Experiment>(windowOf, WINDOW);
  const total = found.total ?? 0;
  const { selecting, size, chosen } = useSelection(asked, total, found);
  return (
    <Listing
      {...props}
      kind={EXPERIMENTS}
      asked={asked}
      found={found}
      selecting={selecting}
      bar={size > 0 && <SelectionBar chosen={chosen} size={size} total={total} selecting={selecting} />}
    />
  );
}

function TrialRows(props: RowsProps) {
  const asked = useAsked(TRIALS, props.search, props.projectId);
  const windowOf = useCallback((offset: number) => listedTrialsQuery(asked, offset, WINDOW), [asked]);
  const found = useWindows<ListedTrial>(windowOf, WINDOW);
  const total = found.total ?? 0;
  const windows = { windowOf, size: WINDOW, total, rowAt: found.rowAt };
  const { selecting, picked } = usePicked<ListedTrial>(
    "trial",
    windows,
    JSON.stringify({ ...asked, sort: "", metrics: [] }),
  );
  return (
    <Listing
      {...props}
      kind={TRIALS}
      asked={asked}
      found={found}
      selecting={selecting}
      bar={picked.size > 0 && <TrialsBar picked={picked} total={total} selecting={selecting} />}
    />
  );
}
