/** Tasks that no search asked for, of all kinds in one table. */

import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { taskName, useKill, useMayKill } from "../actions/tasks";
import { count } from "../format";
import { useCommands } from "../keys/commands";
import { lazy } from "../parts";
import { useLive } from "../services/live";
import { meQuery } from "../services/session";
import { type ListedTask, stateOf, TASK_TYPES, type TaskType, tasksQuery } from "../services/tasks";
import { workspacesQuery } from "../services/workspaces";
import { Button, FIELD } from "../ui/Button";
import { Empty, Loading, Problem } from "../ui/notices";
import { openDialog } from "../ui/overlays";
import { Page } from "../ui/Page";
import { SearchField } from "../ui/SearchField";
import { StateMark } from "../ui/State";
import { Table } from "../ui/Table";
import { Moment } from "../ui/values";

const CommandDialog = lazy(() => import("../actions/CommandDialog"));
const route = getRouteApi("/shell/tasks");

export function TasksPage() {
  const search = route.useSearch();
  const { q, type, owner, workspace, old } = search;
  const me = useSuspenseQuery(meQuery).data;
  const navigate = useNavigate();
  const found = useLive(
    tasksQuery({ name: q, type, userId: owner === "me" ? me.id : undefined, workspaceId: workspace, old }),
  );
  const workspaces = useLive(workspacesQuery({ archived: true })).data?.rows ?? [];
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const mayKill = useMayKill();
  const kill = useKill();
  const rows = found.data?.rows ?? [];
  const chosen = rows.filter((row) => picked.has(row.taskId) && mayKill(row));
  const change = (changed: Partial<typeof search>, replace = false) =>
    void navigate({ to: "/tasks", search: { ...search, ...changed }, replace });
  const start = () =>
    openDialog((close) => (
      <CommandDialog
        onClose={close}
        onDone={(taskId) => void navigate({ to: "/tasks/$taskId", params: { taskId }, search: {} })}
      />
    ));
  const killPicked = () => kill(chosen, () => setPicked(new Set()));
  useCommands([
    { title: "Start a command", run: start },
    ...(chosen.length > 0
      ? [{ name: "kill" as const, title: `Kill ${count(chosen.length)} selected tasks`, run: killPicked }]
      : []),
  ]);
  const nameOf = new Map(workspaces.map((each) => [each.id, each.name]));
  const pick = (row: ListedTask) => {
    const next = new Set(picked);
    if (!next.delete(row.taskId)) next.add(row.taskId);
    setPicked(next);
  };
  return (
    <Page
      title="Tasks"
      name="Tasks"
      aside={
        <>
          <SearchField
            label="Part of the name"
            value={q ?? ""}
            onChange={(to) => change({ q: to || undefined }, true)}
          />
          <select
            aria-label="Type"
            className={FIELD}
            value={type ?? ""}
            onChange={(event) => change({ type: (event.target.value as TaskType) || undefined })}
          >
            <option value="">Any type</option>
            {Object.entries(TASK_TYPES).map(([key, word]) => (
              <option key={key} value={key}>
                {word}
              </option>
            ))}
          </select>
          <select
            aria-label="Owner"
            className={FIELD}
            value={owner ?? ""}
            onChange={(event) => change({ owner: event.target.value === "me" ? "me" : undefined })}
          >
            <option value="">Everyone's</option>
            <option value="me">Mine</option>
          </select>
          <select
            aria-label="Workspace"
            className={`${FIELD} max-w-56`}
            value={workspace ?? ""}
            onChange={(event) => change({ workspace: Number(event.target.value) || undefined })}
          >
            <option value="">Any workspace</option>
            {workspaces.map((each) => (
              <option key={each.id} value={each.id}>
                {each.name}
              </option>
            ))}
          </select>
          <label className="flex min-h-7 items-center gap-1.5">
            <input
              type="checkbox"
              checked={old ?? false}
              onChange={(event) => change({ old: event.target.checked || undefined })}
            />
            Include older tasks
          </label>
          <Button onClick={start}>Start a command</Button>
        </>
      }
    >
      {chosen.length > 0 && (
        <p role="status" className="flex flex-wrap items-center gap-2">
          {count(chosen.length)} selected
          <Button look="danger" onClick={killPicked} aria-keyshortcuts="Shift+K">
            Kill
          </Button>
          <Button onClick={() => setPicked(new Set())}>Clear selection</Button>
        </p>
      )}
      {found.error && !found.data ? (
        <Problem error={found.error} retry={() => void found.refetch()} />
      ) : !found.data ? (
        <Loading what="tasks" />
      ) : rows.length === 0 ? (
        <Empty
          title={q || type || owner || workspace ? "No matching tasks" : "No tasks are running, and none ended today"}
          command="tenax command run --slots 1 nvidia-smi"
        >
          Commands and generic tasks run programs on the cluster that are not experiments. At the command line:
        </Empty>
      ) : (
        <Table
          label="Tasks"
          rows={rows}
          keyOf={(row) => row.taskId}
          columns={[
            {
              id: "select",
              title: "Select",
              cell: (row) =>
                mayKill(row) && (
                  <input
                    type="checkbox"
                    aria-label={`Select ${taskName(row)}`}
                    className="size-4 align-middle accent-(--accent)"
                    checked={picked.has(row.taskId)}
                    onChange={() => pick(row)}
                  />
                ),
            },
            ...COLUMNS,
            {
              id: "workspace",
              title: "Workspace",
              wide: true,
              cell: (row) => nameOf.get(row.workspaceId) ?? row.workspaceId,
            },
            {
              id: "reason",
              title: "Why",
              wide: true,
              cell: (row) => <span title={row.reason}>{row.reason || "–"}</span>,
            },
          ]}
        />
      )}
      {found.data && found.data.total > rows.length && (
        <p className="text-dim">
          The newest {count(rows.length)} of {count(found.data.total)}.
        </p>
      )}
    </Page>
  );
}

export const COLUMNS = [
  {
    id: "name",
    title: "Task",
    wide: true,
    cell: (row: ListedTask) => (
      <Link
        to="/tasks/$taskId"
        params={{ taskId: row.taskId }}
        search={{}}
        className="hover:underline"
        title={`${row.description} ${row.taskId}`}
      >
        {row.description || row.taskId}
      </Link>
    ),
  },
  { id: "type", title: "Type", cell: (row: ListedTask) => TASK_TYPES[row.taskType] },
  {
    id: "state",
    title: "State",
    cell: (row: ListedTask) => <StateMark state={stateOf(row)} reason={row.reason} />,
  },
  { id: "owner", title: "Owner", cell: (row: ListedTask) => row.username },
  { id: "pool", title: "Pool", cell: (row: ListedTask) => row.resourcePool },
  { id: "started", title: "Submitted", cell: (row: ListedTask) => <Moment at={row.startTime} /> },
  { id: "ended", title: "Ended", cell: (row: ListedTask) => <Moment at={row.endTime} /> },
];
