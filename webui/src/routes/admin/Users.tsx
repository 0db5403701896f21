/** People: created, changed, deactivated, put into groups. */

import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useCallback } from "react";
import { reportEach } from "../../actions/each";
import { outcome } from "../../actions/perform";
import { usePicked } from "../../actions/picked";
import { count } from "../../format";
import { useCommands } from "../../keys/commands";
import { lazy } from "../../parts";
import { meQuery, nameOf, type User } from "../../services/session";
import { activateUsers, USERS, usersQuery } from "../../services/users";
import { Button } from "../../ui/Button";
import { type Column, Grid } from "../../ui/Grid";
import { Empty, Loading, Problem } from "../../ui/notices";
import { openDialog, say } from "../../ui/overlays";
import { SearchField } from "../../ui/SearchField";
import { Moment } from "../../ui/values";
import { useWindows } from "../../ui/windows";
import { OnlyAdministrators } from "./OnlyAdministrators";

const UserDialog = lazy(() => import("../../actions/UserDialog"));
const PutIntoGroup = lazy(() => import("../../actions/PutIntoGroup"));
const route = getRouteApi("/shell/admin/{-$part}");

const OWN = "You stay active: only another administrator can deactivate you";

/** Undone by its opposite, which who has deactivated themselves could not press: so nobody does that to themselves. */
function useActivation() {
  const client = useQueryClient();
  const me = useSuspenseQuery(meQuery).data;
  return async function activate(asked: number[], active: boolean, undone = false): Promise<void> {
    const ids = active ? asked : asked.filter((id) => id !== me.id);
    const also = ids.length < asked.length ? OWN : undefined;
    if (ids.length === 0) {
      say({ text: OWN });
      return;
    }
    const results = await outcome(activateUsers(ids, active), active ? "Activate users" : "Deactivate users");
    if (results)
      reportEach(results, {
        past: active ? "Activated" : "Deactivated",
        noun: ["user", "users"],
        also,
        undo: undone ? undefined : (well) => void activate(well, !active, true),
      });
    await client.invalidateQueries({ queryKey: ["users"] });
  };
}

export default function Users({ may }: { may: boolean }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const activate = useActivation();
  const { q, sort = "name", inactive } = search;
  const windowOf = useCallback(
    (offset: number) => usersQuery({ q, sort, inactive }, offset, USERS),
    [q, sort, inactive],
  );
  const found = useWindows<User>(windowOf, USERS);
  const { selecting, picked } = usePicked<User>("user", {
    windowOf,
    size: USERS,
    total: found.total ?? 0,
    rowAt: found.rowAt,
  });
  const open = (user?: User) =>
    openDialog((close) => <UserDialog user={user} onClose={close} onActivate={(id, to) => void activate([id], to)} />);
  const columns = [nameColumn(may ? open : undefined), ...REST];
  const switched = async (to: boolean) => {
    await activate([...picked], to);
    selecting.none();
  };
  const group = () => openDialog((close) => <PutIntoGroup userIds={[...picked]} onClose={close} />);
  const bulk = [
    { title: "Activate", run: () => void switched(true) },
    { title: "Deactivate", run: () => void switched(false) },
    { title: "Add to a group…", run: group },
  ];
  const size = `${count(picked.size)} selected users`;
  useCommands([
    ...(may ? [{ title: "Create a user", run: () => open() }] : []),
    ...(picked.size > 0
      ? [
          ...bulk.map(({ title, run }) => ({ title: `${title.replace("…", "")}: ${size}`, run })),
          { name: "leave" as const, title: "Clear selection", run: selecting.none },
        ]
      : []),
  ]);
  return (
    <>
      <div className="flex flex-wrap items-center gap-2">
        <SearchField
          label="Part of a name"
          value={q ?? ""}
          onChange={(to) => void navigate({ search: { ...search, q: to || undefined }, replace: true })}
        />
        <label className="flex min-h-7 items-center gap-1.5">
          <input
            type="checkbox"
            checked={inactive ?? false}
            onChange={(event) => void navigate({ search: { ...search, inactive: event.target.checked || undefined } })}
          />
          Include deactivated
        </label>
        {may ? (
          <Button onClick={() => open()}>New user</Button>
        ) : (
          <OnlyAdministrators>create and change users</OnlyAdministrators>
        )}
        {picked.size > 0 && (
          <>
            <p aria-live="polite">{count(picked.size)} selected</p>
            {bulk.map(({ title, run }) => (
              <Button key={title} onClick={run}>
                {title}
              </Button>
            ))}
          </>
        )}
      </div>
      {found.error && found.total === undefined ? (
        <Problem error={found.error} retry={found.retry} />
      ) : found.total === undefined ? (
        <Loading what="users" />
      ) : found.total === 0 ? (
        <Empty title="No matching users" command="tenax user create NAME">
          An administrator creates users. At the command line:
        </Empty>
      ) : (
        <Grid
          label="Users"
          columns={columns}
          minWidth={860}
          total={found.total}
          rowAt={found.rowAt}
          keyOf={(row) => row.id}
          onView={found.onView}
          stale={found.stale}
          sort={sort}
          onSort={(to) => void navigate({ search: { ...search, sort: to } })}
          onOpen={(user) => may && open(user)}
          selecting={may ? selecting : undefined}
        />
      )}
    </>
  );
}

function linked({ agentUserGroup }: User): string {
  if (!agentUserGroup) return "–";
  const { agentUid, agentUser, agentGid, agentGroup } = agentUserGroup;
  return `${agentUser} (${agentUid}) : ${agentGroup} (${agentGid})`;
}

/** `open`: where users may be changed; the mouse opens them by their names, Enter by their rows. */
function nameColumn(open: ((user: User) => void) | undefined): Column<User> {
  return {
    id: "name",
    title: "User name",
    width: "minmax(140px, 1fr)",
    sort: "name",
    cell: (user) =>
      open ? (
        <button
          type="button"
          tabIndex={-1}
          title={user.username}
          className="max-w-full truncate hover:underline"
          onClick={() => open(user)}
        >
          {user.username}
        </button>
      ) : (
        <span title={user.username}>{user.username}</span>
      ),
  };
}

const REST: Column<User>[] = [
  {
    id: "displayName",
    title: "Display name",
    width: "minmax(140px, 1fr)",
    sort: "displayName",
    cell: (user) => <span title={nameOf(user)}>{user.displayName || "–"}</span>,
  },
  {
    id: "admin",
    title: "Role",
    width: "130px",
    sort: "admin",
    cell: (user) => (user.admin ? "Administrator" : "User"),
  },
  {
    id: "active",
    title: "State",
    width: "130px",
    sort: "active",
    cell: (user) =>
      user.active ? <span className="text-ok">✓ Active</span> : <span className="text-off">⊘ Deactivated</span>,
  },
  { id: "seen", title: "Last login", width: "110px", sort: "seen", cell: (user) => <Moment at={user.lastAuthAt} /> },
  {
    id: "linked",
    title: "Tasks run as",
    width: "200px",
    cell: (user) => <span title={linked(user)}>{linked(user)}</span>,
  },
];
