/** Starts a command: a line for the shell, and where it runs. */

import { useRef, useState } from "react";
import { poolsQuery } from "../services/cluster";
import { useLive } from "../services/live";
import { Once } from "../services/once";
import { launchCommand } from "../services/tasks";
import { templatesQuery } from "../services/templates";
import { workspacesQuery } from "../services/workspaces";
import { FIELD } from "../ui/Button";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";
import { say } from "../ui/overlays";

const FIRST = { entrypoint: "", pool: "", slots: 0, template: "", workspaceId: 1 };

export default function CommandDialog(props: { onClose: () => void; onDone: (id: string) => void }) {
  const pools = useLive(poolsQuery).data ?? [];
  const templates = useLive(templatesQuery()).data?.rows ?? [];
  const workspaces = useLive(workspacesQuery({})).data?.rows ?? [];
  const [draft, setDraft] = useState(FIRST);
  const once = useRef(new Once());
  const change = (changed: Partial<typeof FIRST>) => setDraft({ ...draft, ...changed });
  const submit = async () => {
    const { id, notices } = await launchCommand(draft, once.current);
    props.onClose();
    say({ text: ["Started a command", ...notices].join(". ") });
    props.onDone(id);
  };
  const choice = (label: string, value: string, none: string, names: [string, string][], set: (to: string) => void) => (
    <Field label={label}>
      {(ids) => (
        <select {...ids} className={FIELD} value={value} onChange={(event) => set(event.target.value)}>
          {none && <option value="">{none}</option>}
          {names.map(([id, name]) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
  const same = (name: string): [string, string] => [name, name];
  return (
    <FormDialog title="Start a command" yes="Start" onClose={props.onClose} onSubmit={submit}>
      <Field
        label="Entrypoint"
        hint="A line for the shell. To send files along, use the command line: tenax command run -c DIRECTORY."
      >
        {(ids) => (
          <textarea
            {...ids}
            required
            rows={3}
            spellCheck={false}
            className={`${FIELD} py-1 font-mono text-sm`}
            placeholder="nvidia-smi && python3 -c 'print(1)'"
            value={draft.entrypoint}
            onChange={(event) => change({ entrypoint: event.target.value })}
          />
        )}
      </Field>
      <div className="grid gap-3 sm:grid-cols-2">
        <Field label="Slots" hint="0 if it needs none.">
          {(ids) => (
            <input
              {...ids}
              required
              type="number"
              min={0}
              className={FIELD}
              value={draft.slots}
              onChange={(event) => change({ slots: Number(event.target.value) })}
            />
          )}
        </Field>
        {choice(
          "Pool",
          draft.pool,
          "Default pool",
          pools.map((each) => same(each.name)),
          (pool) => change({ pool }),
        )}
        {choice(
          "Workspace",
          String(draft.workspaceId),
          "",
          workspaces.map((each) => [String(each.id), each.name]),
          (id) => change({ workspaceId: Number(id) }),
        )}
        {templates.length > 0 &&
          choice(
            "Template",
            draft.template,
            "None",
            templates.map((each) => same(each.name)),
            (template) => change({ template }),
          )}
      </div>
    </FormDialog>
  );
}
