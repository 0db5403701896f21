/** Creates a user with a first password, or changes one: names, role, the account on agents, password, whether they may log in. */

import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import { expectedOf } from "../editing/merge";
import { useEdit } from "../editing/useEdit";
import { lazy } from "../parts";
import { meQuery, type User } from "../services/session";
import { type AgentUserGroup, changeUser, createUser, readUser } from "../services/users";
import { Button, FIELD } from "../ui/Button";
import type { Blame } from "../ui/blame";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";
import { closeDialog, openDialog, say } from "../ui/overlays";

const TextDialog = lazy(() => import("./TextDialog"));

const BLAME: Blame = {
  displayName: /displayName/,
  password: /password/,
  linked: /agentUserGroup|agentUid|agentGid/,
  username: /user name|already exists/,
};
/** As they are written: four texts, all of them or none. */
type Linked = Record<keyof AgentUserGroup, string>;
const LINKED: [keyof AgentUserGroup, string][] = [
  ["agentUser", "User"],
  ["agentUid", "User ID"],
  ["agentGroup", "Group"],
  ["agentGid", "Group ID"],
];

export default function UserDialog(props: {
  user?: User;
  onClose: () => void;
  onActivate: (userId: number, active: boolean) => void;
}) {
  const { user, onClose, onActivate } = props;
  const client = useQueryClient();
  const edit = useEdit({ of: user, valuesOf, read: async () => user && readUser(user.id), labels: LABELS });
  const { username, displayName, admin, agentUserGroup: linked } = edit.values;
  const [password, setPassword] = useState("");
  const submit = async () => {
    if (!user) await createUser({ username, displayName, admin, agentUserGroup: groupOf(linked) }, password);
    await edit.save(async ({ of, values, changed }) => {
      if (!of) return;
      const differs = (name: keyof typeof values) => changed.includes(name);
      await changeUser(of.id, {
        ...(differs("username") && { username: values.username }),
        ...(differs("displayName") && { displayName: values.displayName }),
        ...(differs("admin") && { admin: values.admin }),
        ...(differs("agentUserGroup") && { agentUserGroup: groupOf(values.agentUserGroup) ?? NOBODY }),
        expected: expectedOf(of, changed),
      });
    });
    onClose();
    say({ text: user ? `Changed user ${username}` : `Created user ${username}. Let them know their first password.` });
    for (const queryKey of [["users"], meQuery.queryKey]) void client.invalidateQueries({ queryKey });
  };
  return (
    <FormDialog
      title={user ? `User ${user.username}` : "New user"}
      yes={user ? "Save" : "Create"}
      blame={BLAME}
      onClose={onClose}
      onSubmit={submit}
      also={user && <Also user={user} onActivate={onActivate} />}
    >
      {(at) => (
        <>
          {edit.overtaken}
          <Field label="User name" problem={at("username")}>
            {(ids) => (
              <input
                {...ids}
                required
                autoComplete="off"
                className={FIELD}
                value={username}
                onChange={(event) => edit.set({ username: event.target.value })}
              />
            )}
          </Field>
          <Field label="Display name" problem={at("displayName")}>
            {(ids) => (
              <input
                {...ids}
                autoComplete="off"
                className={FIELD}
                value={displayName}
                onChange={(event) => edit.set({ displayName: event.target.value })}
              />
            )}
          </Field>
          {!user && (
            <Field label="First password" problem={at("password")} hint="They can change it in their settings.">
              {(ids) => (
                <input
                  {...ids}
                  type="password"
                  autoComplete="new-password"
                  className={FIELD}
                  value={password}
                  onChange={(event) => setPassword(event.target.value)}
                />
              )}
            </Field>
          )}
          <label className="flex min-h-7 items-center gap-1.5">
            <input type="checkbox" checked={admin} onChange={(event) => edit.set({ admin: event.target.checked })} />
            Administrator: can change everything, including what others own
          </label>
          <Account linked={linked} onChange={(agentUserGroup) => edit.set({ agentUserGroup })} problem={at("linked")} />
        </>
      )}
    </FormDialog>
  );
}

const LABELS = {
  username: "User name",
  displayName: "Display name",
  admin: "Administrator",
  agentUserGroup: "Account on agents",
};

function valuesOf(user?: User) {
  return {
    username: user?.username ?? "",
    displayName: user?.displayName ?? "",
    admin: user?.admin ?? false,
    agentUserGroup: linkedOf(user),
  };
}

const NOBODY: AgentUserGroup = { agentUid: null, agentGid: null, agentUser: null, agentGroup: null };

function linkedOf(user?: User): Linked {
  const group = user?.agentUserGroup;
  const text = (value: string | number | null | undefined) => ((value ?? "") === "" ? "" : String(value));
  return {
    agentUser: text(group?.agentUser),
    agentUid: text(group?.agentUid),
    agentGroup: text(group?.agentGroup),
    agentGid: text(group?.agentGid),
  };
}

/** Null: no account at all. What is written in part is sent: the master says what it lacks. */
function groupOf(linked: Linked): AgentUserGroup | null {
  if (Object.values(linked).every((text) => text === "")) return null;
  const number = (text: string) => (text === "" ? null : Number(text));
  return {
    agentUser: linked.agentUser || null,
    agentUid: number(linked.agentUid),
    agentGroup: linked.agentGroup || null,
    agentGid: number(linked.agentGid),
  };
}

function Account(props: { linked: Linked; onChange: (linked: Linked) => void; problem?: string }) {
  const { linked, onChange } = props;
  return (
    <fieldset className="flex min-w-0 flex-col gap-2">
      <legend className="pb-1 font-medium">Account on agents</legend>
      <p className="text-dim text-sm">
        Their tasks run as this user and group. Fill in all four fields or none; with none, they run as the agent is set
        up.
      </p>
      <div className="grid grid-cols-2 gap-2">
        {LINKED.map(([name, label]) => {
          const numeric = name === "agentUid" || name === "agentGid";
          return (
            <label key={name} className="flex min-w-0 flex-col gap-1">
              <span>{label}</span>
              <input
                className={`${FIELD} w-full`}
                aria-label={numeric ? (name === "agentUid" ? "User ID" : "Group ID") : label}
                aria-invalid={props.problem ? true : undefined}
                inputMode={numeric ? "numeric" : undefined}
                pattern={numeric ? "[0-9]*" : undefined}
                value={linked[name]}
                onChange={(event) => onChange({ ...linked, [name]: event.target.value })}
              />
            </label>
          );
        })}
      </div>
      {props.problem && (
        <p role="alert" className="break-words text-bad">
          {props.problem}
        </p>
      )}
    </fieldset>
  );
}

function Also({ user, onActivate }: { user: User; onActivate: (userId: number, active: boolean) => void }) {
  const own = useSuspenseQuery(meQuery).data.id === user.id;
  const reset = () =>
    openDialog((close) => (
      <TextDialog
        title={`A new password for ${user.username}`}
        label="New password"
        hint="All of their logins end; their access tokens stay valid."
        type="password"
        yes="Set password"
        value=""
        onClose={close}
        onSubmit={async (password) => {
          await changeUser(user.id, { password });
          say({ text: `Set a new password for ${user.username}. Let them know.` });
        }}
      />
    ));
  return (
    <>
      {!user.remote && <Button onClick={reset}>Set a password…</Button>}
      {!own && (
        <Button
          look={user.active ? "danger" : "plain"}
          onClick={() => {
            closeDialog();
            onActivate(user.id, !user.active);
          }}
        >
          {user.active ? "Deactivate" : "Activate"}
        </Button>
      )}
      <span className="flex-1" />
    </>
  );
}
