/** What can be done to tasks, by their owners and administrators. */

import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { count } from "../format";
import { meQuery } from "../services/session";
import { changeTask, type ListedTask, TASK_TYPES, taskAllows } from "../services/tasks";
import { closeDialog, type Failure, openDialog, say } from "../ui/overlays";
import { Confirm } from "./Confirm";
import { doAndSay, type Offered } from "./offered";
import { mayChange } from "./states";

/** `command nightly check`. */
export function taskName(task: ListedTask): string {
  return `${TASK_TYPES[task.taskType].toLowerCase()} ${task.description || task.taskId}`;
}

export function useTasksAgain(): () => void {
  const client = useQueryClient();
  return () => {
    for (const kind of ["tasks", "task"]) void client.invalidateQueries({ queryKey: [kind] });
  };
}

export function useMayKill(): (task: ListedTask) => boolean {
  const me = useSuspenseQuery(meQuery).data;
  return (task) => mayChange(me, task.userId) && taskAllows(task, "kill");
}

/** Of several, each is ended by itself: those that are refused are listed with their reasons. */
export function useKill(): (tasks: ListedTask[], done?: () => void) => void {
  const again = useTasksAgain();
  return (tasks, done) => {
    const first = tasks[0];
    if (!first) return;
    const what = tasks.length === 1 ? taskName(first) : `${count(tasks.length)} tasks`;
    const go = async () => {
      closeDialog();
      const failures: Failure[] = [];
      for (const task of tasks) {
        await changeTask(task.taskId, "kill").catch((error: unknown) => {
          failures.push({
            id: task.description || task.taskId,
            reason: error instanceof Error ? error.message : String(error),
          });
        });
      }
      if (failures.length === 0) say({ text: `Killing ${what}` });
      else say({ text: `${count(failures.length)} of ${count(tasks.length)} tasks were not killed`, failures });
      done?.();
      again();
    };
    openDialog((close) => (
      <Confirm
        title={`Kill ${what}?`}
        names={tasks.map(taskName)}
        size={tasks.length}
        warning="It ends at once, and so do its child tasks. What it has not saved is lost."
        yes="Kill"
        onYes={() => void go()}
        onNo={close}
      />
    ));
  };
}

export function useTaskActions(task: ListedTask): Offered[] {
  const me = useSuspenseQuery(meQuery).data;
  const again = useTasksAgain();
  const kill = useKill();
  if (!mayChange(me, task.userId)) return [];
  const name = taskName(task);
  const hold = (verb: "pause" | "unpause"): Promise<void> =>
    doAndSay(
      {
        asked: () => changeTask(task.taskId, verb),
        doing: `${verb === "pause" ? "Pause" : "Resume"} ${name}`,
        done: verb === "pause" ? `Pausing ${name}: it saves and frees its slots` : `Resumed ${name}`,
        undo: () => void hold(verb === "pause" ? "unpause" : "pause"),
      },
      again,
    );
  const offered: Offered[] = [];
  for (const [verb, short] of [
    ["pause", "Pause"],
    ["unpause", "Resume"],
  ] as const) {
    if (taskAllows(task, verb))
      offered.push({ name: "hold", short, title: `${short} ${name}`, run: () => void hold(verb) });
  }
  if (taskAllows(task, "kill")) {
    offered.push({ name: "kill", short: "Kill", title: `Kill ${name}`, run: () => kill([task]), danger: true });
  }
  return offered;
}
