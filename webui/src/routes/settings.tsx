/** One's own settings: who one is, one's password, how the page looks, one's access tokens, and the keys. */

import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { outcome } from "../actions/perform";
import { useDensity } from "../density";
import { lazy } from "../parts";
import { meQuery, type User } from "../services/session";
import { keepDensity, keepTheme } from "../services/settings";
import { changeUser } from "../services/users";
import { type Theme, useChosenTheme } from "../theme";
import { Button, FIELD } from "../ui/Button";
import type { Blame } from "../ui/blame";
import { Field } from "../ui/Field";
import { Form } from "../ui/Form";
import { DENSITIES } from "../ui/heights";
import { openDialog, say } from "../ui/overlays";
import { Page, Section } from "../ui/Page";
import { AllKeys } from "./help";
import { Tokens } from "./settings/Tokens";

const TokenDialog = lazy(() => import("../actions/TokenDialog"));
const route = getRouteApi("/shell/settings");

const THEMES: Record<Theme, string> = { system: "Same as the system", light: "Light", dark: "Dark" };

export function SettingsPage() {
  const me = useSuspenseQuery(meQuery).data;
  return (
    <Page title="Settings" name="Settings">
      <div className="grid min-w-0 gap-x-8 gap-y-4 lg:grid-cols-3">
        <Profile me={me} />
        <Password me={me} />
        <Appearance />
      </div>
      <OwnTokens me={me} />
      <Section title="Keys">
        <AllKeys />
      </Section>
    </Page>
  );
}

function Profile({ me }: { me: User }) {
  const client = useQueryClient();
  const [displayName, setDisplayName] = useState(me.displayName);
  const save = async () => {
    client.setQueryData(meQuery.queryKey, await changeUser(me.id, { displayName }));
    say({ text: "Saved your name" });
  };
  return (
    <Section title="Profile">
      <Form label="Profile" blame={{ displayName: /displayName/ }} onSubmit={save} className={FORM}>
        {(at, busy, problem) => (
          <>
            <p>
              {me.username} <span className="text-dim">({me.admin ? "administrator" : "user"})</span>
            </p>
            <Field label="Display name" problem={at("displayName")} hint="What others see instead of your user name.">
              {(ids) => (
                <input
                  {...ids}
                  autoComplete="name"
                  className={FIELD}
                  value={displayName}
                  onChange={(event) => setDisplayName(event.target.value)}
                />
              )}
            </Field>
            {problem}
            <Button type="submit" className="self-start" disabled={busy || displayName === me.displayName}>
              Save
            </Button>
            {!me.admin && (
              <p className="text-dim">Only administrators can change user names and who is an administrator.</p>
            )}
          </>
        )}
      </Form>
    </Section>
  );
}

const FORM = "flex min-w-0 max-w-md flex-col gap-3";
const PASSWORDS: Blame = {
  present: /present password|currentPassword|too often|too many/i,
  again: /twice/,
  new: /password/,
};

function Password({ me }: { me: User }) {
  const [present, setPresent] = useState("");
  const [password, setPassword] = useState("");
  const [again, setAgain] = useState("");
  const save = async () => {
    if (password !== again) throw new Error("The passwords differ: type the same one twice.");
    await changeUser(me.id, { password, currentPassword: present });
    for (const clear of [setPresent, setPassword, setAgain]) clear("");
    say({ text: "Changed your password. All your other logins have ended; access tokens stay good." });
  };
  if (me.remote)
    return (
      <Section title="Password">
        <p className="text-dim">You log in through another service: your password is not kept here.</p>
      </Section>
    );
  return (
    <Section title="Password">
      <Form label="Password" blame={PASSWORDS} onSubmit={save} className={FORM}>
        {(at, busy, problem) => (
          <>
            <input type="text" autoComplete="username" value={me.username} readOnly hidden />
            <Secretly
              label="Current password"
              kind="current-password"
              value={present}
              onChange={setPresent}
              problem={at("present")}
            />
            <Secretly
              label="New password"
              kind="new-password"
              value={password}
              onChange={setPassword}
              problem={at("new")}
            />
            <Secretly
              label="Repeat the new password"
              kind="new-password"
              value={again}
              onChange={setAgain}
              problem={at("again")}
            />
            {problem}
            <Button type="submit" className="self-start" disabled={busy || password === ""}>
              Change the password
            </Button>
          </>
        )}
      </Form>
    </Section>
  );
}

function Secretly(props: {
  label: string;
  kind: "current-password" | "new-password";
  value: string;
  onChange: (value: string) => void;
  problem?: string;
}) {
  return (
    <Field label={props.label} problem={props.problem}>
      {(ids) => (
        <input
          {...ids}
          type="password"
          autoComplete={props.kind}
          className={FIELD}
          value={props.value}
          onChange={(event) => props.onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

function Appearance() {
  const client = useQueryClient();
  const theme = useChosenTheme();
  const density = useDensity();
  const kept = (keeping: Promise<void>) => void outcome(keeping, "Keep the appearance");
  return (
    <Section title="Appearance">
      <div className={FORM}>
        <Choice label="Theme" choices={THEMES} value={theme} onChange={(to) => kept(keepTheme(client, to))} />
        <Choice
          label="Table rows"
          choices={DENSITIES}
          value={density}
          onChange={(to) => kept(keepDensity(client, to))}
        />
        <p className="text-dim">It is kept by the master, so it is the same wherever you log in.</p>
      </div>
    </Section>
  );
}

function Choice<T extends string>(props: {
  label: string;
  choices: Record<T, string>;
  value: T;
  onChange: (value: T) => void;
}) {
  return (
    <Field label={props.label}>
      {(ids) => (
        <select
          {...ids}
          className={FIELD}
          value={props.value}
          onChange={(event) => props.onChange(event.target.value as T)}
        >
          {(Object.keys(props.choices) as T[]).map((each) => (
            <option key={each} value={each}>
              {props.choices[each]}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

function OwnTokens({ me }: { me: User }) {
  const { sort, inactive } = route.useSearch();
  const navigate = useNavigate();
  return (
    <Section
      title="Access tokens"
      aside={
        <>
          <Button onClick={() => openDialog((close) => <TokenDialog others={false} onClose={close} />)}>
            New token
          </Button>
          <label className="flex min-h-7 items-center gap-1.5">
            <input
              type="checkbox"
              checked={inactive ?? false}
              onChange={(event) =>
                void navigate({ to: "/settings", search: { sort, inactive: event.target.checked || undefined } })
              }
            />
            Include revoked and expired
          </label>
        </>
      }
    >
      <Tokens
        search={{ user: me.username, sort, inactive }}
        onSort={(to) => void navigate({ to: "/settings", search: { inactive, sort: to } })}
      />
    </Section>
  );
}
