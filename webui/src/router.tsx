/** The routes: what an address means, and which state of a page stands in it. */

import { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  type ErrorComponentProps,
  lazyRouteComponent,
  Outlet,
  redirect,
} from "@tanstack/react-router";
import { BASE, withoutBase } from "./base";
import type { Trouble } from "./cluster/troubles";
import { LEVELS } from "./output/levels";
import type { OutputSearch } from "./output/Output";
import { Login } from "./routes/login";
import { NotFound } from "./routes/notfound";
import { Banner, Kept, Shell, WIDE } from "./routes/shell";
import { BEST_CURVES } from "./search/curves";
import { Refused, whenSessionEnds } from "./services/client";
import { keepCurrent } from "./services/live";
import { masterQuery, meQuery } from "./services/session";
import { STATE_FILTERS } from "./services/stateFilters";
import type { TaskType } from "./services/tasks";
import type { UsageBy } from "./services/usage";
import { Loading, Problem } from "./ui/notices";
import { Page } from "./ui/Page";
import { isDay, PERIODS, type PeriodName, USAGE_BY } from "./usage/address";

export const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2000,
      // What the master refuses it will refuse again.
      retry: (failures, error) => !(error instanceof Refused) && failures < 2,
    },
  },
});

type Search = Record<string, unknown>;

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : typeof value === "number" ? String(value) : undefined;
}

function texts(value: unknown): string[] | undefined {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : undefined;
}

/** What of a list of experiments stands in the address. */
export interface ListSearch {
  q?: string;
  state?: string;
  owner?: "me";
  archived?: boolean;
  sort?: string;
  /** Columns with their widths, from left to right. */
  cols?: string[];
  /** All trials, each a row; without it experiments. */
  rows?: "trials";
}

function listSearch(search: Search): ListSearch {
  const state = text(search.state);
  return {
    q: text(search.q),
    state: state !== undefined && state in STATE_FILTERS ? state : undefined,
    owner: search.owner === "me" ? "me" : undefined,
    archived: search.archived === true || undefined,
    sort: text(search.sort),
    rows: search.rows === "trials" ? "trials" : undefined,
    cols: texts(search.cols),
  };
}

/** Parts of a trial, each with its address; without one its overview. */
export const TRIAL_TABS = ["metrics", "logs", "system", "checkpoints", "code", "config", "events"] as const;
export type TrialTab = (typeof TRIAL_TABS)[number];

const CHART_AXES = ["steps", "time", "epoch"] as const;

/**
 * What of the charts of a trial stands in the address: part of a metric's name, the steps of a zoom, smoothing, what the
 * axis shows (steps, unless something else is named), and whether numbers stand in their place.
 */
export interface ChartSearch {
  metric?: string;
  /** `metric` is a pattern. */
  pattern?: boolean;
  from?: number;
  to?: number;
  /** These three say something only where it is not what is kept for the project. */
  smooth?: number;
  x?: (typeof CHART_AXES)[number];
  log?: boolean;
  view?: "table";
}

function chartSearch(search: Search): ChartSearch {
  return {
    metric: text(search.metric),
    pattern: search.pattern === true || undefined,
    log: typeof search.log === "boolean" ? search.log : undefined,
    from: stepOf(search.from),
    to: stepOf(search.to),
    smooth: smoothOf(search.smooth),
    x: CHART_AXES.find((axis) => axis === search.x),
    view: search.view === "table" ? "table" : undefined,
  };
}

function smoothOf(value: unknown): number | undefined {
  return typeof value === "number" && value >= 0 && value < 1 ? value : undefined;
}

function stepOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) ? value : undefined;
}

function outputSearch(search: Search): OutputSearch {
  const line = Number(search.line);
  return {
    q: text(search.q),
    re: search.re === true || undefined,
    level: LEVELS.find((level) => level === search.level),
    rank: text(search.rank),
    source: text(search.source),
    line: Number.isSafeInteger(line) && line > 0 ? line : undefined,
  };
}

/** `file`: of its code; `checkpoint`: the one that is looked into. */
type TrialSearch = OutputSearch & ChartSearch & { tab?: TrialTab; file?: string; checkpoint?: string };

function trialSearch(search: Search): TrialSearch {
  return {
    // Attempts stand among the events.
    tab: search.tab === "attempts" ? "events" : TRIAL_TABS.find((tab) => tab === search.tab),
    file: text(search.file),
    checkpoint: text(search.checkpoint),
    ...chartSearch(search),
    ...outputSearch(search),
  };
}

const rootRoute = createRootRouteWithContext<{ client: QueryClient }>()({
  component: Outlet,
  notFoundComponent: () => <NotFound />,
});

const loginRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/login",
  component: Login,
  validateSearch: (search: Search): { next?: string } => ({ next: text(search.next) }),
  loader: ({ context }) => context.client.ensureQueryData(masterQuery),
});

const openRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/open",
  component: lazyRouteComponent(() => import("./routes/open"), "OpenPage"),
});

const shellRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: "shell",
  component: Shell,
  beforeLoad: async ({ context, location, matches }) => {
    const me = context.client.ensureQueryData(meQuery);
    // None of it waits for who one is; a browser sends six requests at once, so the answer all waits for is asked for first.
    void context.client.prefetchQuery(masterQuery);
    bring(matches);
    try {
      await me;
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 401) throw error;
      throw redirect({ to: "/login", search: { next: withoutBase(location.href) } });
    }
  },
  loader: ({ context }) =>
    Promise.all([context.client.ensureQueryData(masterQuery), Kept.preload?.(), Banner.preload?.()]),
});

/** The first rows of a table are asked for before it is there; nothing waits for them. */
function lookAhead(cause: string, client: QueryClient, search: Search, projectId?: number): void {
  if (cause !== "enter" || search.tab) return;
  // What all of them follow is then one stream.
  Promise.all([import("./routes/experiments"), import("./routes/kept"), import("./routes/banner")]).then(
    ([page, kept, banner]) => {
      if (WIDE.matches) kept.lookAhead(client);
      banner.lookAhead(client);
      page.lookAhead(client, listSearch(search), projectId);
    },
    // What did not come says so where it is shown.
    () => {},
  );
}

const homeRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/",
  component: lazyRouteComponent(() => import("./routes/home"), "Home"),
});

const experimentsRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/experiments",
  validateSearch: listSearch,
  component: lazyRouteComponent(() => import("./routes/experiments"), "AllExperiments"),
  loader: ({ cause, context, location }) => lookAhead(cause, context.client, location.search),
});

const projectRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/projects/$projectId",
  validateSearch: (search: Search): ListSearch & { tab?: "notes" | "settings"; note?: number } => ({
    ...listSearch(search),
    tab: search.tab === "notes" || search.tab === "settings" ? search.tab : undefined,
    note: stepOf(search.note),
  }),
  params: { parse: ({ projectId }) => ({ projectId: id(projectId) }) },
  loader: ({ cause, context, location, params }) => lookAhead(cause, context.client, location.search, params.projectId),
  component: lazyRouteComponent(() => import("./routes/project"), "ProjectPage"),
});

const TASK_TABS = ["config", "attempts", "children"] as const;

const tasksRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/tasks",
  validateSearch: (
    search: Search,
  ): { q?: string; type?: TaskType; owner?: "me"; workspace?: number; old?: boolean } => ({
    q: text(search.q),
    type: /^TASK_TYPE_[A-Z_]+$/.test(String(search.type)) ? (search.type as TaskType) : undefined,
    owner: search.owner === "me" ? "me" : undefined,
    workspace: stepOf(search.workspace),
    old: search.old === true || undefined,
  }),
  component: lazyRouteComponent(() => import("./routes/tasks"), "TasksPage"),
});

const taskRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/tasks/$taskId",
  validateSearch: (search: Search): OutputSearch & { tab?: (typeof TASK_TABS)[number] } => ({
    ...outputSearch(search),
    tab: TASK_TABS.find((tab) => tab === search.tab),
  }),
  component: lazyRouteComponent(() => import("./routes/task"), "TaskPage"),
});

const workspacesRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/workspaces",
  validateSearch: (search: Search): { q?: string; owner?: "me"; archived?: boolean } => ({
    q: text(search.q),
    owner: search.owner === "me" ? "me" : undefined,
    archived: search.archived === true || undefined,
  }),
  component: lazyRouteComponent(() => import("./routes/workspaces"), "WorkspacesPage"),
});

const workspaceRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/workspaces/$workspaceId",
  validateSearch: (search: Search): { tab?: "members" | "settings"; archived?: boolean } => ({
    tab: search.tab === "members" || search.tab === "settings" ? search.tab : undefined,
    archived: search.archived === true || undefined,
  }),
  params: { parse: ({ workspaceId }) => ({ workspaceId: id(workspaceId) }) },
  component: lazyRouteComponent(() => import("./routes/workspace"), "WorkspacePage"),
});

/** What of the page of an experiment stands in the address; `brush`: axis -> from and to, or some texts. */
interface SearchSearch extends ChartSearch {
  sort?: string;
  best?: number;
  brush?: Record<string, (number | string)[]>;
  /** Axes in their order, by hyperparameter, and those that have the other scale. */
  axes?: string[];
  scales?: string[];
}

const createExperimentRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/experiments/new",
  validateSearch: (search: Search): { fork?: number; project?: number } => ({
    fork: id(String(search.fork)) || undefined,
    project: id(String(search.project)) || undefined,
  }),
  component: lazyRouteComponent(() => import("./routes/create"), "CreatePage"),
});

const experimentRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/experiments/$experimentId",
  validateSearch: (search: Search): SearchSearch => ({
    ...chartSearch(search),
    sort: text(search.sort),
    best: BEST_CURVES.find((best) => best === search.best),
    axes: texts(search.axes),
    scales: texts(search.scales),
    brush: search.brush && typeof search.brush === "object" ? (search.brush as SearchSearch["brush"]) : undefined,
  }),
  params: { parse: ({ experimentId }) => ({ experimentId: id(experimentId) }) },
  component: lazyRouteComponent(() => import("./routes/experiment"), "ExperimentPage"),
});

const trialRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/trials/$trialId",
  validateSearch: trialSearch,
  params: { parse: ({ trialId }) => ({ trialId: id(trialId) }) },
  component: lazyRouteComponent(() => import("./routes/trial"), "TrialPage"),
});

/** Numbers with commas; a single one is a number, as addresses are read. */
export type Numbers = string | number;

export function numbers(value: unknown): Numbers | undefined {
  const written = text(value);
  return written !== undefined && /^\d{1,15}$/.test(written) ? Number(written) : written;
}

/** What of a comparison stands in the address. */
export interface CompareSearch {
  trials?: Numbers;
  hide?: Numbers;
  tab?: "diff";
  all?: boolean;
  q?: string;
  /** `q` is a pattern. */
  re?: boolean;
  /** These three say something only where it is not what is kept for the project. */
  x?: "time" | "steps";
  log?: boolean;
  smooth?: number;
  /** Hyperparameters by which trials are grouped. */
  by?: string[];
  band?: "range";
}

const compareRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/compare",
  validateSearch: (search: Search): CompareSearch => ({
    trials: numbers(search.trials),
    hide: numbers(search.hide),
    tab: search.tab === "diff" ? "diff" : undefined,
    all: search.all === true || undefined,
    q: text(search.q),
    re: search.re === true || undefined,
    // Older addresses have batches for steps.
    x: search.x === "time" ? "time" : search.x === "steps" || search.x === "batches" ? "steps" : undefined,
    log: typeof search.log === "boolean" ? search.log : undefined,
    smooth: smoothOf(search.smooth),
    by: texts(search.by),
    band: search.band === "range" ? "range" : undefined,
  }),
  component: lazyRouteComponent(() => import("./routes/compare"), "ComparePage"),
});

const queueRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/queue",
  validateSearch: (search: Search): { pool?: string; job?: string } => ({
    pool: text(search.pool),
    job: text(search.job),
  }),
  component: lazyRouteComponent(() => import("./routes/queue"), "QueuePage"),
});

const clusterRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/cluster",
  validateSearch: (search: Search): { pool?: string; show?: Trouble; q?: string } => ({
    pool: text(search.pool),
    show: text(search.show) as Trouble | undefined,
    q: text(search.q),
  }),
  component: lazyRouteComponent(() => import("./routes/cluster"), "ClusterPage"),
});

/** What of the usage stands in the address; days are those of UTC. */
export interface UsageSearch {
  by?: UsageBy;
  from?: string;
  to?: string;
  per?: PeriodName;
  sort?: string;
}

const usageRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/usage",
  validateSearch: (search: Search): UsageSearch => ({
    by: USAGE_BY.find((by) => by === search.by),
    from: isDay(search.from) ? search.from : undefined,
    to: isDay(search.to) ? search.to : undefined,
    per: PERIODS.find((per) => per === search.per),
    sort: text(search.sort),
  }),
  component: lazyRouteComponent(() => import("./routes/usage"), "UsagePage"),
});

const masterLogRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/master/logs",
  validateSearch: (search: Search): { q?: string; level?: string } => ({
    q: text(search.q),
    level: LEVELS.find((level) => level === search.level),
  }),
  component: lazyRouteComponent(() => import("./routes/masterlog"), "MasterLogPage"),
});

const modelsRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/models",
  validateSearch: (search: Search): { q?: string; archived?: boolean } => ({
    q: text(search.q),
    archived: search.archived === true || undefined,
  }),
  component: lazyRouteComponent(() => import("./routes/models"), "ModelsPage"),
});

const modelRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/models/$name",
  component: lazyRouteComponent(() => import("./routes/model"), "ModelPage"),
});

const templatesRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/templates",
  validateSearch: (search: Search): { q?: string; name?: string; new?: true } => ({
    q: text(search.q),
    name: text(search.name),
    new: search.new === true || undefined,
  }),
  component: lazyRouteComponent(() => import("./routes/templates"), "TemplatesPage"),
});

const webhooksRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/webhooks",
  validateSearch: (search: Search): { webhook?: number } => ({ webhook: stepOf(search.webhook) }),
  component: lazyRouteComponent(() => import("./routes/webhooks"), "WebhooksPage"),
});

/** What of a list of people or of tokens stands in the address. */
function peopleSearch(search: Search): { q?: string; user?: string; sort?: string; inactive?: boolean } {
  const { q, user, sort, inactive } = search;
  return { q: text(q), user: text(user), sort: text(sort), inactive: inactive === true || undefined };
}

const settingsRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/settings",
  validateSearch: peopleSearch,
  component: lazyRouteComponent(() => import("./routes/settings"), "SettingsPage"),
});

const versionRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/models/$name/versions/$version",
  params: { parse: ({ name, version }) => ({ name, version: id(version) }) },
  component: lazyRouteComponent(() => import("./routes/version"), "VersionPage"),
});

const adminRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/admin/{-$part}",
  validateSearch: peopleSearch,
  component: lazyRouteComponent(() => import("./routes/admin"), "AdminPage"),
});

function id(value: string): number {
  return /^\d{1,15}$/.test(value) ? Number(value) : 0;
}

function Failed({ error, reset }: ErrorComponentProps) {
  return (
    <Page title="Something went wrong" name="Error">
      <Problem error={error} retry={reset} />
    </Page>
  );
}

export const router = createRouter({
  routeTree: rootRoute.addChildren([
    loginRoute,
    openRoute,
    shellRoute.addChildren([
      homeRoute,
      experimentsRoute,
      projectRoute,
      tasksRoute,
      taskRoute,
      workspacesRoute,
      workspaceRoute,
      createExperimentRoute,
      experimentRoute,
      trialRoute,
      compareRoute,
      queueRoute,
      clusterRoute,
      usageRoute,
      masterLogRoute,
      modelsRoute,
      modelRoute,
      versionRoute,
      templatesRoute,
      webhooksRoute,
      settingsRoute,
      adminRoute,
    ]),
  ]),
  basepath: BASE || "/",
  context: { client },
  defaultErrorComponent: Failed,
  defaultNotFoundComponent: () => <NotFound />,
  defaultPendingComponent: () => <Loading what="the page" />,
  defaultPendingMs: 200,
});

/** Begin to load the code of pages. */
function bring(matches: { routeId: string }[]): void {
  const pages = router.routesById as Record<string, { options: { component?: { preload?: () => unknown } } }>;
  for (const { routeId } of matches) pages[routeId]?.options.component?.preload?.();
  Kept.preload?.();
  Banner.preload?.();
}

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}

// What the stream says of the end of a session is asked for: where it has ended, that is a 401 like any other.
keepCurrent(client, () => void client.fetchQuery({ ...meQuery, staleTime: 0 }).catch(() => {}));

// A session may end while a page is open: whoever logs in again is where they were.
whenSessionEnds(() => {
  client.removeQueries({ queryKey: meQuery.queryKey });
  const here = withoutBase(router.state.location.href);
  if (!here.startsWith("/login") && !here.startsWith("/open"))
    void router.navigate({ to: "/login", search: { next: here } });
});
