/** Groups of people, and who is in each. The one that is open stands in the address. */

import { useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Confirm } from "../../actions/Confirm";
import { outcome } from "../../actions/perform";
import { count } from "../../format";
import { lazy } from "../../parts";
import { useLive } from "../../services/live";
import { nameOf, type User } from "../../services/session";
import {
  changeGroup,
  createGroup,
  deleteGroup,
  type GroupDetails,
  groupQuery,
  groupsQuery,
  userNamed,
} from "../../services/users";
import { Button } from "../../ui/Button";
import { Empty, Loading, Problem } from "../../ui/notices";
import { closeDialog, openDialog, say } from "../../ui/overlays";
import { Section } from "../../ui/Page";
import { Table } from "../../ui/Table";
import { OnlyAdministrators } from "./OnlyAdministrators";

const TextDialog = lazy(() => import("../../actions/TextDialog"));
const route = getRouteApi("/shell/admin/{-$part}");

function useRefresh() {
  const client = useQueryClient();
  return () => Promise.all(["groups", "group"].map((kind) => client.invalidateQueries({ queryKey: [kind] })));
}

export default function Groups({ may }: { may: boolean }) {
  const { q } = route.useSearch();
  const navigate = route.useNavigate();
  const refresh = useRefresh();
  const groups = useLive(groupsQuery);
  const create = () =>
    openDialog((close) => (
      <TextDialog
        title="New group"
        label="Name"
        yes="Create"
        value=""
        required
        onClose={close}
        onSubmit={async (name) => {
          const made = await createGroup(name);
          void navigate({ search: { q: String(made.groupId) } });
          await refresh();
        }}
      />
    ));
  const rows = groups.data?.rows ?? [];
  return (
    <>
      <div className="flex flex-wrap items-center gap-2">
        {may ? (
          <Button onClick={create}>New group</Button>
        ) : (
          <OnlyAdministrators>create and change groups</OnlyAdministrators>
        )}
        <p className="text-dim">A group by itself gives nobody any rights.</p>
      </div>
      {groups.error && !groups.data ? (
        <Problem error={groups.error} retry={() => void groups.refetch()} />
      ) : !groups.data ? (
        <Loading what="groups" />
      ) : rows.length === 0 ? (
        <Empty title="No groups yet" command="tenax user-group create NAME">
          A group gathers people under a name. At the command line:
        </Empty>
      ) : (
        <div className="grid min-w-0 gap-4 lg:grid-cols-2">
          <div className="min-w-0">
            <Table
              label="Groups"
              rows={rows}
              keyOf={({ group }) => group.groupId}
              columns={[
                {
                  id: "name",
                  title: "Group",
                  wide: true,
                  cell: ({ group }) => (
                    <Link
                      to="/admin/{-$part}"
                      params={{ part: "groups" }}
                      search={{ q: String(group.groupId) }}
                      title={group.name}
                      className="hover:underline"
                      activeProps={{ className: "font-semibold" }}
                    >
                      {group.name}
                    </Link>
                  ),
                },
                { id: "members", title: "Members", align: "right", cell: ({ numMembers }) => count(numMembers) },
              ]}
            />
            {(groups.data.total ?? 0) > rows.length && (
              <p className="text-dim">
                The first {count(rows.length)} of {count(groups.data.total)}.
              </p>
            )}
          </div>
          {q ? (
            <Opened groupId={Number(q)} may={may} />
          ) : (
            <p className="text-dim">Choose a group to see its members.</p>
          )}
        </div>
      )}
    </>
  );
}

function Opened({ groupId, may }: { groupId: number; may: boolean }) {
  const shown = useLive(groupQuery(groupId));
  if (!shown.data)
    return shown.error ? (
      <Problem error={shown.error} retry={() => void shown.refetch()} />
    ) : (
      <Loading what="the group" />
    );
  return <Members group={shown.data} may={may} />;
}

function Members({ group, may }: { group: GroupDetails; may: boolean }) {
  const navigate = route.useNavigate();
  const client = useQueryClient();
  const refresh = useRefresh();
  const { groupId, name } = group;
  const put = async (user: User, into: boolean, undone = false): Promise<void> => {
    const change = into ? { addUsers: [user.id] } : { removeUsers: [user.id] };
    const done = await outcome(changeGroup(groupId, change), `Change group ${name}`);
    const text = into ? `Added ${user.username} to ${name}` : `Removed ${user.username} from ${name}`;
    if (done) say({ text, undo: undone ? undefined : () => void put(user, !into, true) });
    await refresh();
  };
  const add = () =>
    openDialog((close) => (
      <TextDialog
        title={`Add someone to ${name}`}
        label="User name"
        yes="Add"
        value=""
        required
        onClose={close}
        onSubmit={async (username) => {
          const user = await userNamed(username.trim());
          await changeGroup(groupId, { addUsers: [user.id] });
          await refresh();
        }}
      />
    ));
  const rename = () =>
    openDialog((close) => (
      <TextDialog
        title={`Rename group ${name}`}
        label="Name"
        yes="Rename"
        value={name}
        required
        onClose={close}
        read={async () => (await client.fetchQuery({ ...groupQuery(groupId), staleTime: 0 })).name}
        onSubmit={async (to, former) => {
          await changeGroup(groupId, { name: to, expected: { name: former } });
          await refresh();
        }}
      />
    ));
  const remove = async () => {
    closeDialog();
    const done = await outcome(
      deleteGroup(groupId).then(() => true),
      `Delete group ${name}`,
    );
    if (!done) return;
    say({ text: `Deleted group ${name}` });
    await navigate({ search: {} });
    await refresh();
  };
  const ask = () =>
    openDialog((close) => (
      <Confirm
        title={`Delete group ${name}?`}
        names={[name]}
        size={1}
        warning={`Its ${count(group.users.length)} members remain users.`}
        yes="Delete"
        onYes={() => void remove()}
        onNo={close}
      />
    ));
  return (
    <Section
      title={`Members of ${name}`}
      aside={
        may && (
          <>
            <Button onClick={add}>Add a member…</Button>
            <Button onClick={rename}>Rename</Button>
            <Button look="danger" onClick={ask}>
              Delete
            </Button>
          </>
        )
      }
    >
      {group.users.length === 0 ? (
        <p className="text-dim">It has no members.</p>
      ) : (
        <Table
          label={`Members of ${name}`}
          rows={group.users}
          keyOf={(user) => user.id}
          columns={[
            { id: "name", title: "User", wide: true, cell: (user) => user.username },
            { id: "shown", title: "Display name", wide: true, cell: (user) => nameOf(user) },
            ...(may
              ? [
                  {
                    id: "out",
                    title: "Change",
                    cell: (user: User) => (
                      <Button aria-label={`Remove ${user.username}`} onClick={() => void put(user, false)}>
                        Remove
                      </Button>
                    ),
                  },
                ]
              : []),
          ]}
        />
      )}
    </Section>
  );
}
