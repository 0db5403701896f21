/**
 * The login over a page on which somebody types: a session that ends takes none of it. Esc puts it away, so that the text
 * can be copied; whatever is refused next asks again.
 */

import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { login, meQuery, type User } from "../services/session";
import { visible } from "../visible";
import { FIELD } from "./Button";
import { Field } from "./Field";
import { FormDialog } from "./FormDialog";
import { loggedInAgain, useOverlays } from "./overlays";

export function LogInAgain({ me }: { me: User }) {
  return useOverlays().loggedOut ? <Asked me={me} /> : null;
}

function Asked({ me }: { me: User }) {
  const client = useQueryClient();
  const [password, setPassword] = useState("");
  const goOn = (user: User) => {
    // What was typed is of one user: no other goes on with it.
    if (user.id !== me.id) return window.location.reload();
    client.setQueryData(meQuery.queryKey, user);
    loggedInAgain();
    void client.invalidateQueries();
  };
  const elsewhere = () => void client.fetchQuery({ ...meQuery, staleTime: 0 }).then(goOn, () => {});
  useEffect(() => {
    window.addEventListener("focus", elsewhere);
    return () => window.removeEventListener("focus", elsewhere);
  });
  return (
    <FormDialog
      title="Your session has ended"
      yes="Log in"
      onClose={loggedInAgain}
      onSubmit={async () => goOn(await login(me.username, password))}
    >
      <p>What you were typing is still there, and not saved: log in as {visible(me.username)}, then save it.</p>
      {/* Whose password it is, for whatever keeps passwords. */}
      <input hidden readOnly autoComplete="username" value={me.username} />
      <Field label="Password" hint="Or log in in another tab, as with tenax open, and come back to this one.">
        {(ids) => (
          <input
            {...ids}
            type="password"
            autoComplete="current-password"
            className={FIELD}
            value={password}
            onChange={(event) => setPassword(event.target.value)}
          />
        )}
      </Field>
    </FormDialog>
  );
}
