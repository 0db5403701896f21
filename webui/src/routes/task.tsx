/** One task: how it stands and why, its output, its configuration, and what came from it. */

import { getRouteApi, Link } from "@tanstack/react-router";
import { Buttons } from "../actions/offered";
import { useTaskActions } from "../actions/tasks";
import { count } from "../format";
import { useCommands } from "../keys/commands";
import { Output } from "../output/Output";
import { useLive } from "../services/live";
import { type ListedTask, type ShownTask, stateOf, TASK_TYPES, taskEnded, taskQuery } from "../services/tasks";
import { workspaceQuery } from "../services/workspaces";
import { Facts } from "../ui/Facts";
import { Loading, Problem } from "../ui/notices";
import { Page } from "../ui/Page";
import { StateMark } from "../ui/State";
import { Tabs } from "../ui/Tabs";
import { Moment } from "../ui/values";
import { Attempts, Children, Configuration } from "./task/tabs";

const route = getRouteApi("/shell/tasks/$taskId");

export function TaskPage() {
  const { taskId } = route.useParams();
  const { tab } = route.useSearch();
  const shown = useLive(taskQuery(taskId), (data) => data.launched !== undefined && taskEnded(data.launched));
  const data = shown.data?.task.taskId === taskId ? shown.data : undefined;
  if (!data) {
    return (
      <Page title="Task" name="Task">
        {shown.error ? <Problem error={shown.error} retry={() => void shown.refetch()} /> : <Loading what="the task" />}
      </Page>
    );
  }
  const { task, launched } = data;
  const name = task.description || `Task ${taskId}`;
  const rest = { config: "Configuration", attempts: "Attempts", ...(launched && { children: "Children" }) };
  return (
    <Page title={name} name={name} full={tab === undefined} aside={launched && <About task={launched} />}>
      <Tabs label="Parts of this task" tab={tab} first="Output" rest={rest} />
      {tab === undefined && (
        <>
          {launched ? <TaskFacts task={launched} shown={data} /> : <OfTrial />}
          <Output key={taskId} of={taskId} ended={launched ? taskEnded(launched) : task.endTime !== null} />
        </>
      )}
      {tab === "config" && <Configuration task={task} />}
      {tab === "attempts" && <Attempts task={task} />}
      {tab === "children" && launched && <Children task={launched} />}
    </Page>
  );
}

function OfTrial() {
  return <p className="text-dim">This task belongs to a trial: the trial's page has the rest.</p>;
}

function About({ task }: { task: ListedTask }) {
  const actions = useTaskActions(task);
  useCommands(actions);
  const ended = taskEnded(task);
  return (
    <>
      <StateMark state={stateOf(task)} />
      <p className="text-dim">
        {TASK_TYPES[task.taskType]} of {task.username}, submitted <Moment at={task.startTime} />
        {ended && (
          <>
            , ended <Moment at={task.endTime} />
          </>
        )}
      </p>
      <Buttons of={actions} />
      {task.reason && (
        <p className={`w-full break-words ${stateOf(task) === "STATE_ERROR" ? "text-bad" : ended ? "" : "text-wait"}`}>
          {task.reason}
        </p>
      )}
    </>
  );
}

function TaskFacts({ task, shown }: { task: ListedTask; shown: ShownTask }) {
  const workspace = useLive(workspaceQuery(task.workspaceId)).data;
  const newest = shown.task.allocations[0];
  const devices = task.container?.devices?.map((device) => device.brand || device.uuid || "device").join(", ");
  return (
    <Facts
      facts={[
        [
          "Pool",
          <Link key="p" to="/queue" search={{ pool: task.resourcePool }} className="hover:underline">
            {task.resourcePool}
          </Link>,
        ],
        ["Slots", count(newest?.slots ?? slotsOf(shown.task.config))],
        ["Devices", devices || "–"],
        ["Priority", count(task.priority)],
        [
          "Workspace",
          <Link
            key="w"
            to="/workspaces/$workspaceId"
            params={{ workspaceId: task.workspaceId }}
            search={{}}
            className="hover:underline"
          >
            {workspace?.name ?? task.workspaceId}
          </Link>,
        ],
        ["Attempts", count(shown.task.allocations.length)],
        ["Exit code", task.exitCode ?? "–"],
        ...(task.parentId ? [["Child of", <Other key="c" id={task.parentId} />] as [string, React.ReactNode]] : []),
        ...(task.forkedFrom ? [["Fork of", <Other key="f" id={task.forkedFrom} />] as [string, React.ReactNode]] : []),
      ]}
    />
  );
}

/** What it asks for; a task has one slot where it says nothing. */
function slotsOf(config: string | null | undefined): number {
  const { resources } = (config ? JSON.parse(config) : {}) as { resources?: { slots?: number } };
  return resources?.slots ?? 1;
}

function Other({ id }: { id: string }) {
  return (
    <Link to="/tasks/$taskId" params={{ taskId: id }} search={{}} className="underline" title={id}>
      {id.slice(0, 8)}
    </Link>
  );
}
