/** Creates a token with which machines join, and shows it once. */

import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { Once } from "../services/once";
import { createJoinToken } from "../services/tokens";
import { FIELD } from "../ui/Button";
import type { Blame } from "../ui/blame";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";
import { openDialog } from "../ui/overlays";
import { Secret } from "../ui/Secret";

const BLAME: Blame = { life: /lifespan/, uses: /uses/, agent: /agentId/, description: /description/ };

export default function JoinTokenDialog({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [description, setDescription] = useState("");
  const [agentId, setAgentId] = useState("");
  const [uses, setUses] = useState("1");
  const [lifespan, setLifespan] = useState("1h");
  const once = useRef(new Once());
  const submit = async () => {
    const number = uses.trim() === "" ? -1 : Number(uses);
    const asked = { description, agentId: agentId || undefined, uses: number, lifespan };
    const token = await createJoinToken(asked, once.current);
    void client.invalidateQueries({ queryKey: ["join-tokens"] });
    openDialog((close) => (
      <Secret title="Join token" secret={token} onClose={close}>
        It is shown only this once. Write it to a file on the new machine and pass that file with --join-token-file.
      </Secret>
    ));
  };
  const fields = [
    { name: "description", label: "What it is for", value: description, set: setDescription },
    {
      name: "life",
      label: "Valid for",
      value: lifespan,
      set: setLifespan,
      hint: "For example 90m, 12h or 2d; at most a year.",
    },
    {
      name: "uses",
      label: "How many agents",
      value: uses,
      set: setUses,
      hint: "Leave empty for any number.",
      numeric: true,
    },
    {
      name: "agent",
      label: "Agent",
      value: agentId,
      set: setAgentId,
      hint: "Leave empty for any agent. With a name, only that agent can join, even if one of that name has joined before.",
    },
  ];
  return (
    <FormDialog title="New join token" yes="Create" blame={BLAME} onClose={onClose} onSubmit={submit}>
      {(at) =>
        fields.map(({ name, label, value, set, hint, numeric }) => (
          <Field key={name} label={label} hint={hint} problem={at(name)}>
            {(ids) => (
              <input
                {...ids}
                className={FIELD}
                inputMode={numeric ? "numeric" : undefined}
                pattern={numeric ? "[0-9]*" : undefined}
                value={value}
                onChange={(event) => set(event.target.value)}
              />
            )}
          </Field>
        ))
      }
    </FormDialog>
  );
}
