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
import type { OutputSearch } from "./output/Output";
import { Login } from "./routes/login";
import { NotFound } from "./routes/notfound";
import { Shell } from "./routes/shell";
import { Refused, whenSessionEnds } from "./services/client";
import { keepCurrent } from "./services/live";
import { LEVELS } from "./services/output";
import { masterQuery, meQuery } from "./services/session";
import { STATE_FILTERS } from "./services/states";
import { Loading, Problem } from "./ui/notices";
import { Page } from "./ui/Page";

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

/** What of a list of experiments stands in the address. */
export interface ListSearch {
  q?: string;
  state?: string;
  owner?: "me";
  archived?: boolean;
  sort?: string;
}

function listSearch(search: Search): ListSearch {
  const state = text(search.state);
  return {
    q: text(search.q),
    state: state !== undefined && state in STATE_FILTERS ? state : undefined,
    owner: search.owner === "me" ? "me" : undefined,
    archived: search.archived === true || undefined,
    sort: text(search.sort),
  };
}

/** Parts of a trial, each with its address; without one its overview. */
export const TRIAL_TABS = ["metrics", "logs", "checkpoints", "config", "attempts"] as const;
export type TrialTab = (typeof TRIAL_TABS)[number];

function trialSearch(search: Search): OutputSearch & { tab?: TrialTab; metric?: string } {
  const line = Number(search.line);
  return {
    tab: TRIAL_TABS.find((tab) => tab === search.tab),
    metric: text(search.metric),
    q: text(search.q),
    re: search.re === true || undefined,
    level: LEVELS.find((level) => level === search.level),
    rank: text(search.rank),
    source: text(search.source),
    line: Number.isSafeInteger(line) && line > 0 ? line : undefined,
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
  beforeLoad: async ({ context, location }) => {
    try {
      await context.client.ensureQueryData(meQuery);
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 401) throw error;
      throw redirect({ to: "/login", search: { next: withoutBase(location.href) } });
    }
  },
  loader: ({ context }) => context.client.ensureQueryData(masterQuery),
});

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
});

const projectRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/projects/$projectId",
  validateSearch: listSearch,
  params: { parse: ({ projectId }) => ({ projectId: id(projectId) }) },
  component: lazyRouteComponent(() => import("./routes/experiments"), "ProjectExperiments"),
});

const experimentRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/experiments/$experimentId",
  validateSearch: (search: Search): { sort?: string; metric?: string } => ({
    sort: text(search.sort),
    metric: text(search.metric),
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

const queueRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/queue",
  validateSearch: (search: Search): { pool?: string } => ({ pool: text(search.pool) }),
  component: lazyRouteComponent(() => import("./routes/queue"), "QueuePage"),
});

const clusterRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/cluster",
  component: lazyRouteComponent(() => import("./routes/cluster"), "ClusterPage"),
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
      experimentRoute,
      trialRoute,
      queueRoute,
      clusterRoute,
    ]),
  ]),
  basepath: BASE || "/",
  context: { client },
  defaultErrorComponent: Failed,
  defaultNotFoundComponent: () => <NotFound />,
  defaultPendingComponent: () => <Loading what="the page" />,
  defaultPendingMs: 200,
});

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
