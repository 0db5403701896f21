/** Logging in. Afterwards one is where one came from. */

import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, useRouter } from "@tanstack/react-router";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { BASE, ownAddress } from "../base";
import { login, masterQuery, meQuery } from "../services/session";
import { Button, FIELD } from "../ui/Button";
import { loggedInAgain } from "../ui/overlays";

const route = getRouteApi("/login");

export function Login() {
  const { next } = route.useSearch();
  const router = useRouter();
  const client = useQueryClient();
  const master = useSuspenseQuery(masterQuery).data;
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const password = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = "Log in · Tenax";
  }, []);

  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    setBusy(true);
    setError("");
    try {
      const user = await login(String(fields.get("username")), String(fields.get("password")));
      client.clear();
      loggedInAgain();
      client.setQueryData(meQuery.queryKey, user);
      router.history.replace(BASE + ownAddress(next));
    } catch (problem) {
      setError(problem instanceof Error ? problem.message : String(problem));
      setBusy(false);
      password.current?.focus();
      password.current?.select();
    }
  }

  return (
    <main className="flex min-h-full items-center justify-center p-4">
      <form onSubmit={submit} className="flex w-full max-w-80 flex-col gap-3">
        <h1 className="font-semibold text-lg">Tenax</h1>
        <p className="-mt-2 text-dim">{master.clusterName || "Log in to this cluster"}</p>
        {master.clusterMessage?.message && (
          <p className="whitespace-pre-wrap break-words rounded-md border border-line bg-raised p-2">
            {master.clusterMessage.message}
          </p>
        )}
        <label className="flex flex-col gap-1">
          User name
          {/* biome-ignore lint/a11y/noAutofocus: the page is for this alone. */}
          <input className={FIELD} name="username" autoComplete="username" autoCapitalize="none" required autoFocus />
        </label>
        <label className="flex flex-col gap-1">
          Password
          <input
            ref={password}
            className={FIELD}
            name="password"
            type="password"
            autoComplete="current-password"
            aria-invalid={error !== ""}
            aria-describedby={error ? "login-error" : undefined}
          />
        </label>
        <p id="login-error" role="alert" className="text-bad empty:hidden">
          {error}
        </p>
        <Button look="primary" type="submit" disabled={busy}>
          Log in
        </Button>
        <p className="text-dim text-sm">
          No password yet? <code className="font-mono">tenax up</code> printed where the first users&apos; passwords
          are.
        </p>
      </form>
    </main>
  );
}
