/** The routes: which page an address leads to, and what is loaded for it. */

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
import {
  clusterSearch,
  compareSearch,
  createSearch,
  experimentSearch,
  id,
  listSearch,
  loginSearch,
  masterLogSearch,
  modelsSearch,
  peopleSearch,
  projectSearch,
  queueSearch,
  type Search,
  taskSearch,
  tasksSearch,
  templatesSearch,
  trialSearch,
  usageSearch,
  webhooksSearch,
  workspaceSearch,
  workspacesSearch,
} from "./addresses";
import { BASE, withoutBase } from "./base";
import { brought } from "./parts";
import { Login } from "./routes/login";
import { NotFound } from "./routes/notfound";
import { Banner, Kept, Shell, WIDE } from "./routes/shell";
import { Refused, whenSessionEnds } from "./services/client";
import { sessionEnded } from "./services/ended";
import { keepCurrent } from "./services/live";
import { masterQuery, meQuery } from "./services/session";
import { Loading, Problem } from "./ui/notices";
import { askToLogIn, isLoggedOut } from "./ui/overlays";
import { Page } from "./ui/Page";
import { isTyped } from "./ui/typed";

export const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2000,
      // What the master refuses it will refuse again.
      retry: (failures, error) => !(error instanceof Refused) && failures < 2,
    },
  },
});

const rootRoute = createRootRouteWithContext<{ client: QueryClient }>()({
  component: Outlet,
  notFoundComponent: () => <NotFound />,
});

const loginRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/login",
  component: Login,
  validateSearch: loginSearch,
  loader: ({ context }) => context.client.ensureQueryData(masterQuery),
});

const openRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/open",
  component: lazyRouteComponent(() => brought(() => import("./routes/open")), "OpenPage"),
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
      if (!(error instanceof Refused) || !sessionEnded(error.status, error.message)) throw error;
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
  component: lazyRouteComponent(() => brought(() => import("./routes/home")), "Home"),
});

const experimentsRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/experiments",
  validateSearch: listSearch,
  component: lazyRouteComponent(() => brought(() => import("./routes/experiments")), "AllExperiments"),
  loader: ({ cause, context, location }) => lookAhead(cause, context.client, location.search),
});

const projectRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/projects/$projectId",
  validateSearch: projectSearch,
  params: { parse: ({ projectId }) => ({ projectId: id(projectId) }) },
  loader: ({ cause, context, location, params }) => lookAhead(cause, context.client, location.search, params.projectId),
  component: lazyRouteComponent(() => brought(() => import("./routes/project")), "ProjectPage"),
});

const tasksRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/tasks",
  validateSearch: tasksSearch,
  component: lazyRouteComponent(() => brought(() => import("./routes/tasks")), "TasksPage"),
});

const taskRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/tasks/$taskId",
  validateSearch: taskSearch,
  component: lazyRouteComponent(() => brought(() => import("./routes/task")), "TaskPage"),
});

const workspacesRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/workspaces",
  validateSearch: workspacesSearch,
  component: lazyRouteComponent(() => brought(() => import("./routes/workspaces")), "WorkspacesPage"),
});

const workspaceRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/workspaces/$workspaceId",
  validateSearch: workspaceSearch,
  params: { parse: ({ workspaceId }) => ({ workspaceId: id(workspaceId) }) },
  component: lazyRouteComponent(() => brought(() => import("./routes/workspace")), "WorkspacePage"),
});

const createExperimentRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/experiments/new",
  validateSearch: createSearch,
  component: lazyRouteComponent(() => brought(() => import("./routes/create")), "CreatePage"),
});

const experimentRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/experiments/$experimentId",
  validateSearch: experimentSearch,
  params: { parse: ({ experimentId }) => ({ experimentId: id(experimentId) }) },
  component: lazyRouteComponent(() => brought(() => import("./routes/experiment")), "ExperimentPage"),
});

const trialRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/trials/$trialId",
  validateSearch: trialSearch,
  params: { parse: ({ trialId }) => ({ trialId: id(trialId) }) },
  component: lazyRouteComponent(() => brought(() => import("./routes/trial")), "TrialPage"),
});

const compareRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/compare",
  validateSearch: compareSearch,
  component: lazyRouteComponent(() => brought(() => import("./routes/compare")), "ComparePage"),
});

const queueRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/queue",
  validateSearch: queueSearch,
  component: lazyRouteComponent(() => brought(() => import("./routes/queue")), "QueuePage"),
});

const clusterRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/cluster",
  validateSearch: clusterSearch,
  component: lazyRouteComponent(() => brought(() => import("./routes/cluster")), "ClusterPage"),
});

const usageRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/usage",
  validateSearch: usageSearch,
  component: lazyRouteComponent(() => brought(() => import("./routes/usage")), "UsagePage"),
});

const masterLogRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/master/logs",
  validateSearch: masterLogSearch,
  component: lazyRouteComponent(() => brought(() => import("./routes/masterlog")), "MasterLogPage"),
});

const modelsRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/models",
  validateSearch: modelsSearch,
  component: lazyRouteComponent(() => brought(() => import("./routes/models")), "ModelsPage"),
});

const modelRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/models/$name",
  component: lazyRouteComponent(() => brought(() => import("./routes/model")), "ModelPage"),
});

const templatesRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/templates",
  validateSearch: templatesSearch,
  component: lazyRouteComponent(() => brought(() => import("./routes/templates")), "TemplatesPage"),
});

const webhooksRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/webhooks",
  validateSearch: webhooksSearch,
  component: lazyRouteComponent(() => brought(() => import("./routes/webhooks")), "WebhooksPage"),
});

const settingsRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/settings",
  validateSearch: peopleSearch,
  component: lazyRouteComponent(() => brought(() => import("./routes/settings")), "SettingsPage"),
});

const versionRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/models/$name/versions/$version",
  params: { parse: ({ name, version }) => ({ name, version: id(version) }) },
  component: lazyRouteComponent(() => brought(() => import("./routes/version")), "VersionPage"),
});

const adminRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: "/admin/{-$part}",
  validateSearch: peopleSearch,
  component: lazyRouteComponent(() => brought(() => import("./routes/admin")), "AdminPage"),
});

/** Whatever no other route has: whoever followed an old link has the navigation still. */
const nowhereRoute = createRoute({ getParentRoute: () => shellRoute, path: "$", component: NotFound });

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
      nowhereRoute,
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

// What the stream says of the end of a session is asked for: where it has ended, that is refused like anything else.
keepCurrent(client, () => void client.fetchQuery({ ...meQuery, staleTime: 0 }).catch(() => {}));

// A session may end while a page is open: whoever logs in again is where they were, with what they were typing.
whenSessionEnds(() => {
  if (isTyped() || isLoggedOut()) return askToLogIn();
  client.removeQueries({ queryKey: meQuery.queryKey });
  const here = withoutBase(router.state.location.href);
  if (!here.startsWith("/login") && !here.startsWith("/open"))
    void router.navigate({ to: "/login", search: { next: here } });
});
