/** What a workspace says about what runs in it: pools, checkpoint storage, and as whom. */

import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type FormEvent, useRef, useState } from "react";
import { mayChange } from "../../actions/states";
import { usePlacesAgain } from "../../actions/workspaces";
import { expectedOf } from "../../editing/merge";
import { useEdit } from "../../editing/useEdit";
import { poolsQuery } from "../../services/cluster";
import { useLive } from "../../services/live";
import { meQuery } from "../../services/session";
import { editWorkspace, type Workspace, type WorkspaceSettings, workspaceQuery } from "../../services/workspaces";
import { Button, FIELD } from "../../ui/Button";
import { Facts } from "../../ui/Facts";
import { Field } from "../../ui/Field";
import { say } from "../../ui/overlays";
import { Section } from "../../ui/Page";
import { markTyped, unmarkTyped } from "../../ui/typed";
import { visible } from "../../visible";
import { KEPT, STORAGES, type StorageField, storageOf, type Written, writtenOf } from "./storage";

export function Settings({ workspace }: { workspace: Workspace }) {
  const me = useSuspenseQuery(meQuery).data;
  const open = mayChange(me, workspace.userId) && !workspace.immutable && !workspace.archived;
  return (
    <>
      {open ? <Form workspace={workspace} admin={me.admin === true} /> : <Shown workspace={workspace} />}
      <Section title="Elsewhere">
        <p>
          Templates and webhooks may belong to a workspace, and so do <Models />. At the command line:{" "}
          <code className="font-mono text-sm">tenax template list</code>,{" "}
          <code className="font-mono text-sm">tenax webhook list</code>.
        </p>
      </Section>
    </>
  );
}

function Models() {
  return (
    <Link to="/models" className="text-accent underline">
      models
    </Link>
  );
}

/** To whoever may not change it. */
function Shown({ workspace }: { workspace: Workspace }) {
  const user = workspace.agentUserGroup;
  const storage = Object.entries(workspace.checkpointStorageConfig ?? {}).filter(([, value]) => value !== null);
  return (
    <>
      <p className="text-dim">
        {workspace.immutable
          ? "This is the cluster's own workspace. It cannot be changed."
          : workspace.archived
            ? "It is archived: unarchive it to change its settings."
            : "Only its owner and administrators can change these."}
      </p>
      <Facts
        facts={[
          ["Pool for tasks with slots", workspace.defaultComputePool || "the cluster's"],
          ["Pool for tasks without slots", workspace.defaultAuxPool || "the cluster's"],
          [
            "Tasks run as",
            user?.agentUser ? `${user.agentUser} (${user.agentUid})` : "the cluster's or their owner's user",
          ],
          ["Group of tasks", user?.agentGroup ? `${user.agentGroup} (${user.agentGid})` : "that of this user"],
          ...(storage.length === 0 ? [["Checkpoint storage", "the cluster's"] as [string, string]] : []),
          ...storage.map(([key, value]): [string, string] => [`Storage: ${key}`, String(value)]),
        ]}
      />
    </>
  );
}

interface Draft {
  computePool: string;
  auxPool: string;
  storage: Written;
  user: Record<"agentUser" | "agentUid" | "agentGroup" | "agentGid", string>;
}

function draftOf(workspace: Workspace): Draft {
  const user = workspace.agentUserGroup;
  return {
    computePool: workspace.defaultComputePool ?? "",
    auxPool: workspace.defaultAuxPool ?? "",
    storage: writtenOf(workspace.checkpointStorageConfig),
    user: {
      agentUser: user?.agentUser ?? "",
      agentUid: String(user?.agentUid ?? ""),
      agentGroup: user?.agentGroup ?? "",
      agentGid: String(user?.agentGid ?? ""),
    },
  };
}

const LABELS: Record<keyof Draft, string> = {
  computePool: "The pool for tasks with slots",
  auxPool: "The pool for tasks without slots",
  storage: "The checkpoint storage",
  user: "The user its tasks run as",
};
/** What the master calls them. */
const FIELDS = {
  computePool: "defaultComputePool",
  auxPool: "defaultAuxPool",
  storage: "checkpointStorageConfig",
  user: "agentUserGroup",
} as const;

/** What was changed, as the master takes it. */
function settingsOf(draft: Draft, names: (keyof Draft)[]): WorkspaceSettings {
  const changed = (name: keyof Draft) => names.includes(name);
  const { agentUser, agentUid, agentGroup, agentGid } = draft.user;
  return {
    ...(changed("computePool") && { defaultComputePool: draft.computePool }),
    ...(changed("auxPool") && { defaultAuxPool: draft.auxPool }),
    ...(changed("storage") && { checkpointStorageConfig: storageOf(draft.storage) }),
    ...(changed("user") && {
      agentUserGroup: {
        agentUser: agentUser || null,
        agentUid: agentUid ? Number(agentUid) : null,
        agentGroup: agentGroup || null,
        agentGid: agentGid ? Number(agentGid) : null,
      },
    }),
  };
}

function Form({ workspace, admin }: { workspace: Workspace; admin: boolean }) {
  const again = usePlacesAgain();
  const client = useQueryClient();
  const edit = useEdit({
    of: workspace,
    valuesOf: draftOf,
    read: () => client.fetchQuery({ ...workspaceQuery(workspace.id), staleTime: 0 }),
    labels: LABELS,
  });
  const draft = edit.values;
  const [problem, setProblem] = useState("");
  const form = useRef<HTMLFormElement>(null);
  const asItWas = () => {
    edit.begin(edit.of);
    unmarkTyped(form.current);
  };
  const save = async (event: FormEvent) => {
    event.preventDefault();
    setProblem("");
    try {
      await edit.save(async ({ of, values, changed }) => {
        const fields = changed.map((name) => FIELDS[name]);
        const settings = { ...settingsOf(values, changed), expected: expectedOf(of, fields) };
        edit.begin(await editWorkspace(workspace.id, settings));
        unmarkTyped(form.current);
        say({ text: `Saved workspace ${workspace.name}` });
        again();
      });
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <form
      ref={form}
      onInput={markTyped}
      onSubmit={(event) => void save(event)}
      className="flex max-w-3xl flex-col gap-4"
    >
      {edit.overtaken}
      <Pools draft={draft} change={edit.set} />
      <Storage storage={draft.storage} change={(storage) => edit.set({ storage })} />
      {admin && <AsWhom draft={draft} change={(user) => edit.set({ user })} />}
      {problem && (
        <p role="alert" className="whitespace-pre-wrap break-words text-bad">
          {problem}
        </p>
      )}
      <p className="flex gap-2">
        <Button type="submit" look="primary" disabled={edit.changed.length === 0}>
          Save
        </Button>
        {edit.changed.length > 0 && <Button onClick={asItWas}>Reset</Button>}
      </p>
    </form>
  );
}

function Pools({ draft, change }: { draft: Draft; change: (changed: Partial<Draft>) => void }) {
  const pools = useLive(poolsQuery).data ?? [];
  const choice = (label: string, value: string, set: (value: string) => void) => (
    <Field label={label}>
      {(ids) => (
        <select {...ids} className={FIELD} value={value} onChange={(event) => set(event.target.value)}>
          <option value="">The cluster's</option>
          {[...new Set([...pools.map((pool) => pool.name), ...(value ? [value] : [])])].map((name) => (
            <option key={name} value={name}>
              {visible(name)}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
  return (
    <Section title="Pools">
      <p className="text-dim">Where tasks run if they name no pool.</p>
      <div className="grid gap-3 sm:grid-cols-2">
        {choice("For tasks with slots", draft.computePool, (computePool) => change({ computePool }))}
        {choice("For tasks without slots", draft.auxPool, (auxPool) => change({ auxPool }))}
      </div>
    </Section>
  );
}

function Storage({ storage, change }: { storage: Written; change: (storage: Written) => void }) {
  const kind = STORAGES[storage.type ?? ""];
  const text = ({ key, label, required, secret }: StorageField, type = secret ? "password" : "text") => (
    <Field key={key} label={label} hint={secret ? "Never shown. To change anything here, enter it again." : undefined}>
      {(ids) => (
        <input
          {...ids}
          type={type}
          min={type === "number" ? 0 : undefined}
          required={required}
          autoComplete="off"
          className={FIELD}
          value={storage[key] ?? ""}
          onChange={(event) => change({ ...storage, [key]: event.target.value })}
        />
      )}
    </Field>
  );
  return (
    <Section title="Checkpoint storage">
      <p className="text-dim">
        Where checkpoints go, unless an experiment says otherwise. Existing checkpoints stay where they are.
      </p>
      <Field label="Kind">
        {(ids) => (
          <select
            {...ids}
            className={`${FIELD} max-w-80`}
            value={storage.type ?? ""}
            onChange={(event) => change({ ...storage, type: event.target.value })}
          >
            <option value="">The cluster's</option>
            {Object.entries(STORAGES).map(([type, { word }]) => (
              <option key={type} value={type}>
                {word}
              </option>
            ))}
          </select>
        )}
      </Field>
      {kind && (
        <>
          <div className="grid gap-3 sm:grid-cols-2">{kind.fields.map((field) => text(field))}</div>
          <fieldset className="grid gap-3 sm:grid-cols-3">
            <legend className="pb-1 text-dim">Checkpoints that garbage collection keeps</legend>
            {KEPT.map((field) => text(field, "number"))}
          </fieldset>
        </>
      )}
    </Section>
  );
}

function AsWhom({ draft, change }: { draft: Draft; change: (user: Draft["user"]) => void }) {
  const text = (key: keyof Draft["user"], label: string, type: string) => (
    <Field key={key} label={label}>
      {(ids) => (
        <input
          {...ids}
          type={type}
          min={type === "number" ? 0 : undefined}
          className={FIELD}
          value={draft.user[key]}
          onChange={(event) => change({ ...draft.user, [key]: event.target.value })}
        />
      )}
    </Field>
  );
  return (
    <Section title="Who its tasks run as on agents">
      <p className="text-dim">If empty: the user of whoever submits them, or the cluster's.</p>
      <div className="grid gap-3 sm:grid-cols-2">
        {text("agentUser", "User", "text")}
        {text("agentUid", "User ID", "number")}
        {text("agentGroup", "Group", "text")}
        {text("agentGid", "Group ID", "number")}
      </div>
    </Section>
  );
}
