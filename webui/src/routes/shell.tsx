/** What surrounds every page: where one can go, who one is, and how it looks. */

import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { Link, lazyRouteComponent, Outlet, useMatch, useNavigate } from "@tanstack/react-router";
import { Suspense, useState, useSyncExternalStore } from "react";
import { useCommands, useKeys } from "../keys/commands";
import { caps, keysOf } from "../keys/table";
import { brought, lazy } from "../parts";
import { logout, masterQuery, meQuery, type User } from "../services/session";
import { Connection } from "../ui/Connection";
import { LogInAgain } from "../ui/LogInAgain";
import { Dialogs, openDialog, undoNewest } from "../ui/overlays";
import { Toasts } from "../ui/Toasts";
import { AccountMark } from "./mark";

/** Its menu comes after the page: nothing waits for it. */
const Account = lazy(() => import("./account").then(({ Account }) => ({ default: Account })));
const Palette = lazy(() => import("./palette"));
const Help = lazy(() => import("./help"));
/** Loaded with the first page (router.tsx), not after it: what they follow is then in the first stream. */
export const Kept = lazyRouteComponent(() => brought(() => import("./kept")), "Kept");
export const Banner = lazyRouteComponent(() => brought(() => import("./banner")), "Banner");

const PLACES = [
  { to: "/", name: "Home", shape: "⌂", exact: true, command: "home" },
  { to: "/experiments", name: "Experiments", shape: "▤", exact: false, command: "experiments" },
  { to: "/experiments/new", name: "New", shape: "+", exact: true, command: "create" },
  { to: "/queue", name: "Queue", shape: "≡", exact: false, command: "queue" },
  { to: "/cluster", name: "Cluster", shape: "▦", exact: false, command: "cluster" },
  { to: "/usage", name: "Usage", shape: "∑", exact: false, command: "usage" },
  { to: "/models", name: "Models", shape: "◆", exact: false, command: "models" },
  { to: "/tasks", name: "Tasks", shape: "❯", exact: false, command: "tasks" },
  { to: "/workspaces", name: "Workspaces", shape: "▣", exact: false, command: "workspaces" },
  { to: "/templates", name: "Templates", shape: "¶", exact: false },
  { to: "/webhooks", name: "Webhooks", shape: "↗", exact: false },
  { to: "/admin/{-$part}", name: "Admin", shape: "§", exact: false, command: "admin" },
] as const;

const PLACES_ID = "places";

function openPalette(): void {
  openDialog((close) => <Palette onClose={close} />);
}

/** Where a person can go: the last is for administrators. */
function placesOf(user: User) {
  return user.admin ? PLACES : PLACES.slice(0, -1);
}

/** What can be done on every page. */
function useEverywhere(me: User): void {
  const navigate = useNavigate();
  useKeys();
  useCommands([
    ...placesOf(me).map(({ to, name, ...place }) => ({
      ...("command" in place ? { name: place.command } : { title: `Go to the ${name.toLowerCase()}` }),
      run: () => void navigate({ to }),
    })),
    ...(me.admin ? [{ name: "masterLog" as const, run: () => void navigate({ to: "/master/logs" }) }] : []),
    { name: "settings", run: () => void navigate({ to: "/settings" }) },
    { name: "palette", run: openPalette },
    { name: "help", run: () => openDialog((close) => <Help onClose={close} />) },
    { name: "filter", run: () => document.querySelector<HTMLElement>("#main input[type=search]")?.focus() },
    { name: "undo", run: undoNewest },
  ]);
}

/** Room for more than the places that everyone has. */
export const WIDE = matchMedia("(min-width: 48rem)");

function watchWidth(listener: () => void): () => void {
  WIDE.addEventListener("change", listener);
  return () => WIDE.removeEventListener("change", listener);
}

export function Shell() {
  const me = useSuspenseQuery(meQuery).data;
  const master = useSuspenseQuery(masterQuery).data;
  const [problem, setProblem] = useState("");
  const navigate = useNavigate();
  const client = useQueryClient();
  // One place is shown as where one is: a new experiment is none of those that there are.
  const creates = useMatch({ from: "/shell/experiments/new", shouldThrow: false }) !== undefined;
  const wide = useSyncExternalStore(watchWidth, () => WIDE.matches);
  useEverywhere(me);

  async function leave() {
    try {
      await logout();
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
      return;
    }
    client.clear();
    await navigate({ to: "/login", search: {} });
  }

  return (
    <div className="flex h-full flex-col md:flex-row">
      <button
        type="button"
        onClick={() => document.getElementById("main")?.focus()}
        className="sr-only focus:not-sr-only focus:absolute focus:z-30 focus:bg-surface focus:p-2"
      >
        Skip to the content
      </button>
      <div className="flex shrink-0 items-center gap-1 border-line bg-raised px-2 py-1 max-md:border-b md:w-48 md:flex-col md:items-stretch md:border-r md:py-3">
        <p className="truncate px-2 font-semibold max-md:flex-1 md:pb-2" title={master.clusterName}>
          {master.clusterName || "Tenax"}
        </p>
        {!wide && (
          <button
            type="button"
            popoverTarget={PLACES_ID}
            className="flex min-h-7 items-center gap-2 rounded-md border border-line bg-surface px-2 hover:bg-hover"
          >
            <span aria-hidden="true">☰</span> Places
          </button>
        )}
        <nav
          aria-label="Places"
          className="min-h-0 min-w-0 gap-0.5 overflow-auto md:flex md:flex-col max-md:open:grid max-md:open:grid-cols-2 max-md:fixed max-md:inset-[2.5rem_0.5rem_auto_auto] max-md:max-h-[80vh] max-md:w-72 max-md:rounded-md max-md:border max-md:border-line max-md:bg-surface max-md:p-1"
          {...(!wide && { id: PLACES_ID, popover: "auto" as const })}
        >
          {placesOf(me).map((place) => (
            <Link
              key={place.to}
              to={place.to}
              activeOptions={{ exact: place.exact || creates, includeSearch: false }}
              // Where places are a menu, it closes; the page may be the same.
              onClick={(event) => event.currentTarget.closest<HTMLElement>("[popover]")?.hidePopover()}
              className="flex min-h-7 items-center gap-2 rounded-md px-2 text-dim hover:bg-hover hover:text-text max-md:min-h-9"
              activeProps={{ className: "bg-hover !text-text font-medium" }}
            >
              <span aria-hidden="true" className="w-4 text-center">
                {place.shape}
              </span>
              {place.name}
            </Link>
          ))}
        </nav>
        {wide && <Kept />}
        <button
          type="button"
          onClick={openPalette}
          aria-keyshortcuts="Control+K Meta+K"
          className="flex min-h-7 items-center gap-2 rounded-md px-2 text-dim hover:bg-hover hover:text-text md:mb-2"
        >
          <span aria-hidden="true" className="w-4 text-center">
            ⌕
          </span>
          <span className="flex-1 text-left max-md:sr-only">Search or run</span>
          <span aria-hidden="true" className="text-sm max-md:hidden">
            {caps(keysOf("palette")).join(" ")}
          </span>
        </button>
        <Suspense
          fallback={
            <p className="flex min-h-7 min-w-0 items-center gap-1.5 px-2">
              <AccountMark user={me} />
            </p>
          }
        >
          <Account user={me} onLeave={() => void leave()} />
        </Suspense>
      </div>
      {/* relative: what is there for readers aloud alone is laid out in it, and makes the window itself no taller. */}
      <main id="main" tabIndex={-1} className="relative min-h-0 min-w-0 flex-1 overflow-auto outline-none">
        <Banner first={master.clusterMessage?.message} />
        {problem && (
          <p role="alert" className="px-4 py-2 text-bad">
            {problem}
          </p>
        )}
        <Outlet />
      </main>
      <Toasts />
      <Dialogs />
      <LogInAgain me={me} />
      <Connection />
    </div>
  );
}
