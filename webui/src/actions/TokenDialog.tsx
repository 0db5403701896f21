/** Creates an access token, for oneself or, as an administrator, for somebody else, and shows it once. */

import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { Refused } from "../services/client";
import { Once } from "../services/once";
import { meQuery } from "../services/session";
import { createToken } from "../services/tokens";
import { userNamed } from "../services/users";
import { FIELD } from "../ui/Button";
import type { Blame } from "../ui/blame";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";
import { openDialog } from "../ui/overlays";
import { Secret } from "../ui/Secret";

const NEEDS_PASSWORD = /give your present password with it \(tenax [^)]*\)/;
const BLAME: Blame = {
  user: /not found|not active/,
  password: /present password|your password/,
  life: /lifespan/,
  description: /description/,
};
const DAYS = [1, 7, 30, 90, 365];

/** What the master tells those at a command line to do is done here by a field. Raises what it was refused with. */
function inThisDialog(error: unknown): never {
  if (error instanceof Refused && NEEDS_PASSWORD.test(error.message)) {
    throw new Refused(error.message.replace(NEEDS_PASSWORD, "type your password here"), error.status);
  }
  throw error;
}

export default function TokenDialog({ others, onClose }: { others: boolean; onClose: () => void }) {
  const client = useQueryClient();
  const me = useSuspenseQuery(meQuery).data;
  const [username, setUsername] = useState(me.username);
  const [description, setDescription] = useState("");
  const [days, setDays] = useState("30");
  const [password, setPassword] = useState("");
  const once = useRef(new Once());
  const submit = async () => {
    const user = username === me.username ? me : await userNamed(username);
    const asked = {
      userId: user.id,
      description,
      days: days === "" ? undefined : Number(days),
      currentPassword: password || undefined,
    };
    const token = await createToken(asked, once.current).catch(inThisDialog);
    void client.invalidateQueries({ queryKey: ["tokens"] });
    openDialog((close) => (
      <Secret title={`Access token of ${user.username}`} secret={token} onClose={close}>
        It is shown only this once. Programs use it as DET_USER_TOKEN together with DET_USER, or send it as a Bearer
        token.
      </Secret>
    ));
  };
  return (
    <FormDialog title="New access token" yes="Create" blame={BLAME} onClose={onClose} onSubmit={submit}>
      {(at) => (
        <>
          {others && (
            <Field label="User name" problem={at("user")}>
              {(ids) => (
                <input
                  {...ids}
                  required
                  autoComplete="off"
                  className={FIELD}
                  value={username}
                  onChange={(event) => setUsername(event.target.value)}
                />
              )}
            </Field>
          )}
          <Field label="What it is for" problem={at("description")}>
            {(ids) => (
              <input
                {...ids}
                required
                className={FIELD}
                value={description}
                onChange={(event) => setDescription(event.target.value)}
              />
            )}
          </Field>
          <Field label="Valid for" problem={at("life")}>
            {(ids) => (
              <select {...ids} className={FIELD} value={days} onChange={(event) => setDays(event.target.value)}>
                {DAYS.map((each) => (
                  <option key={each} value={each}>
                    {each === 1 ? "1 day" : `${each} days`}
                  </option>
                ))}
                <option value="">As long as allowed</option>
              </select>
            )}
          </Field>
          <Field
            label="Your password"
            problem={at("password")}
            hint="Needed if you logged in more than 15 minutes ago. Without it, the token cannot outlive this login."
          >
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
        </>
      )}
    </FormDialog>
  );
}
