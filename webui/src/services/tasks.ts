/** Tasks that no search asked for: commands, generic tasks, and those of the cluster itself. */

import { answered, api } from "./client";
import type { State } from "./experiments";
import { query } from "./live";
import type { Once } from "./once";
import type { components } from "./schema";
import { newsOf } from "./stream/news";

export type ListedTask = components["schemas"]["ListedTask"];
export type Task = components["schemas"]["Task"];
export type TaskType = ListedTask["taskType"];

/** Rows that are shown. */
export const MAX_TASKS = 500;
const LIST_MS = 1000;

export const TASK_TYPES: Record<TaskType, string> = {
  TASK_TYPE_COMMAND: "Command",
  TASK_TYPE_GENERIC: "Generic task",
  TASK_TYPE_CHECKPOINT_GC: "Checkpoint removal",
  TASK_TYPE_NOTEBOOK: "Notebook",
  TASK_TYPE_SHELL: "Shell",
  TASK_TYPE_TENSORBOARD: "TensorBoard",
};

export interface TaskSearch {
  name?: string;
  type?: TaskType;
  userId?: number;
  workspaceId?: number;
  parentId?: string;
  /** Those that have ended more than a day ago, too. */
  old?: boolean;
}

export function tasksQuery(search: TaskSearch) {
  return query({
    queryKey: ["tasks", search],
    queryFn: async ({ signal }) => {
      const { type, userId, ...rest } = search;
      const asked = {
        ...rest,
        taskTypes: type && [type],
        userIds: userId === undefined ? undefined : [userId],
        limit: MAX_TASKS,
        orderBy: "ORDER_BY_DESC" as const,
      };
      const reply = await answered(api.GET("/api/v1/launched-tasks", { params: { query: asked }, signal }));
      return { rows: reply.tasks, total: reply.pagination.total ?? 0 };
    },
    topics: ["tasks"],
    news: (change) => newsOf(["task"], change),
    everyMs: LIST_MS,
  });
}

/** One task; where nobody launched it, it is a trial's. */
export interface ShownTask {
  task: Task;
  launched?: ListedTask;
}

export function taskQuery(id: string) {
  return query({
    queryKey: ["task", id],
    queryFn: async ({ signal }): Promise<ShownTask> => {
      const params = { query: { name: id, old: true, limit: 1 } };
      const [{ task }, { tasks }] = await Promise.all([
        answered(api.GET("/api/v1/tasks/{taskId}", { params: { path: { taskId: id } }, signal })),
        answered(api.GET("/api/v1/launched-tasks", { params, signal })),
      ]);
      return { task, launched: tasks.find((each) => each.taskId === id) };
    },
    // Why it waits is known where its queue is.
    topics: (shown) => [
      `tasks/${id}`,
      ...(shown?.launched && stateOf(shown.launched) === "STATE_QUEUED"
        ? [`job-queues/${shown.launched.resourcePool}`]
        : []),
    ],
    news: (change, shown) =>
      newsOf(["task"], change, id) ?? newsOf(["job_queue"], change, shown.launched?.resourcePool ?? ""),
  });
}

type Standing = Pick<ListedTask, "taskState" | "state">;

const ATTEMPT: Partial<Record<ListedTask["state"], State>> = {
  STATE_PULLING: "STATE_PULLING",
  STATE_STARTING: "STATE_STARTING",
  STATE_WAITING: "STATE_STARTING",
  STATE_RUNNING: "STATE_RUNNING",
  STATE_TERMINATING: "STATE_STOPPING_COMPLETED",
};
const OWN: Partial<Record<ListedTask["taskState"], State>> = {
  GENERIC_TASK_STATE_STOPPING_PAUSED: "STATE_PAUSED",
  GENERIC_TASK_STATE_PAUSED: "STATE_PAUSED",
  GENERIC_TASK_STATE_STOPPING_CANCELED: "STATE_STOPPING_CANCELED",
  GENERIC_TASK_STATE_CANCELED: "STATE_CANCELED",
  GENERIC_TASK_STATE_COMPLETED: "STATE_COMPLETED",
  GENERIC_TASK_STATE_ERROR: "STATE_ERROR",
};

/** As it is called: its own state, and while it goes on that of its attempt. */
export function stateOf(task: Standing): State {
  return OWN[task.taskState] ?? ATTEMPT[task.state] ?? "STATE_QUEUED";
}

const ENDED: ReadonlySet<State> = new Set(["STATE_CANCELED", "STATE_COMPLETED", "STATE_ERROR"]);

export function taskEnded(task: Standing): boolean {
  return ENDED.has(stateOf(task));
}

export type TaskVerb = "kill" | "pause" | "unpause";

/** What its state allows; the master has the last word. */
export function taskAllows(task: Standing & { noPause: boolean }, verb: TaskVerb): boolean {
  const state = stateOf(task);
  if (verb === "kill") return !ENDED.has(state) && state !== "STATE_STOPPING_CANCELED";
  if (task.noPause) return false;
  return verb === "unpause" ? state === "STATE_PAUSED" : !ENDED.has(state) && !OWN[task.taskState];
}

/** Reaches all that came from it, too. */
export async function changeTask(id: string, verb: TaskVerb): Promise<void> {
  const params = { path: { taskId: id } };
  if (verb === "pause") await answered(api.POST("/api/v1/tasks/{taskId}/pause", { params }));
  else if (verb === "unpause") await answered(api.POST("/api/v1/tasks/{taskId}/unpause", { params }));
  else await answered(api.POST("/api/v1/tasks/{taskId}/kill", { params, body: { killFromRoot: false } }));
}

export interface CommandDraft {
  entrypoint: string;
  pool: string;
  slots: number;
  template: string;
  workspaceId: number;
}

/** Its id, and what the master remarks. */
export async function launchCommand(draft: CommandDraft, once: Once): Promise<{ id: string; notices: string[] }> {
  const resources = { slots: draft.slots, ...(draft.pool && { resource_pool: draft.pool }) };
  const body = {
    // One text is a line for the shell.
    config: { entrypoint: [draft.entrypoint], resources },
    templateName: draft.template,
    workspaceId: draft.workspaceId,
    files: [],
    data: "",
    preview: false,
  };
  const reply = await once.send(body, (headers) => answered(api.POST("/api/v1/commands", { body, headers })));
  return { id: reply.command.id, notices: reply.notices ?? [] };
}
