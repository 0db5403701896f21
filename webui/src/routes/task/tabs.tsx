/**
 * Parts of a task beside its output. What a task serves (a terminal, a notebook) gets its place here, as a file of its
 * own: see what docs/web.md says of frames.
 */

import { absolute, count, duration } from "../../format";
import { useLive } from "../../services/live";
import { type ListedTask, type Task, tasksQuery } from "../../services/tasks";
import { Copy } from "../../ui/Copy";
import { Empty, Loading, Problem } from "../../ui/notices";
import { Section } from "../../ui/Page";
import { Table } from "../../ui/Table";
import { Moment } from "../../ui/values";
import { yaml } from "../../yaml";
import { COLUMNS } from "../tasks";

function read(text: string | null | undefined): unknown {
  try {
    return text ? JSON.parse(text) : undefined;
  } catch {
    return text;
  }
}

export function Configuration({ task }: { task: Task }) {
  const config = read(task.config);
  if (config === undefined) return <Empty title="It has no configuration of its own" />;
  const text = yaml(config);
  return (
    <Section title="Configuration" aside={<Copy text={text} />}>
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard.
        tabIndex={0}
        className="overflow-x-auto rounded-md border border-line bg-sunken p-3 font-mono text-sm"
      >
        {text}
      </pre>
    </Section>
  );
}

export function Attempts({ task }: { task: Task }) {
  if (task.allocations.length === 0) return <Empty title="Not started yet" />;
  const seconds = (from?: string | null, to?: string | null) =>
    from ? (new Date(to ?? Date.now()).getTime() - new Date(from).getTime()) / 1000 : undefined;
  return (
    <Table
      label="Attempts"
      rows={task.allocations}
      keyOf={(row) => row.allocationId}
      columns={[
        { id: "attempt", title: "Attempt", cell: (row) => row.allocationId.split(".").pop() },
        { id: "state", title: "State", cell: (row) => row.state.replace("STATE_", "").toLowerCase() },
        { id: "slots", title: "Slots", align: "right", cell: (row) => count(row.slots) },
        { id: "began", title: "Began", cell: (row) => <Moment at={row.startTime} /> },
        {
          id: "took",
          title: "Took",
          align: "right",
          cell: (row) => (
            <span title={row.endTime ? absolute(row.endTime) : undefined}>
              {duration(seconds(row.startTime, row.endTime))}
            </span>
          ),
        },
        {
          id: "why",
          title: "Why it ended or is waiting",
          wide: true,
          cell: (row) => row.exitReason || row.reason || "–",
        },
      ]}
    />
  );
}

export function Children({ task }: { task: ListedTask }) {
  const found = useLive(tasksQuery({ parentId: task.taskId, old: true }));
  if (found.error && !found.data) return <Problem error={found.error} retry={() => void found.refetch()} />;
  if (!found.data) return <Loading what="its children" />;
  if (found.data.rows.length === 0) {
    return (
      <Empty title="It has no children" command={`tenax task create -p ${task.taskId} config.yaml`}>
        A child is paused and ended together with its parent task. At the command line:
      </Empty>
    );
  }
  return <Table label="Children" rows={found.data.rows} keyOf={(row) => row.taskId} columns={COLUMNS} />;
}
