/** Who has slots now, and for what. */

import { Link } from "@tanstack/react-router";
import { count } from "../format";
import type { Agent } from "../services/cluster";
import { Table } from "../ui/Table";
import { type Held, holders } from "./standing";

const SHOWN = 50;
const JOBS = 4;

export function Holders({ agents }: { agents: Agent[] }) {
  const all = holders(agents);
  if (all.length === 0) return <p className="text-dim">No slot is in use.</p>;
  return (
    <>
      <Table label="Who is using slots" rows={all.slice(0, SHOWN)} keyOf={(held) => held.username} columns={COLUMNS} />
      {all.length > SHOWN && (
        <p className="text-dim">
          The {count(SHOWN)} of {count(all.length)} who use the most.
        </p>
      )}
    </>
  );
}

const COLUMNS = [
  { id: "who", title: "User", cell: (held: Held) => held.username || "–" },
  { id: "slots", title: "Slots", align: "right" as const, cell: (held: Held) => count(held.slots) },
  {
    id: "jobs",
    title: "For",
    wide: true,
    cell: ({ jobs }: Held) => (
      <>
        {jobs.slice(0, JOBS).map((job, place) => (
          <span key={job.key}>
            {place > 0 && ", "}
            <Job job={job} /> ({count(job.slots)})
          </span>
        ))}
        {jobs.length > JOBS && ` and ${count(jobs.length - JOBS)} more`}
      </>
    ),
  },
];

function Job({ job: { name, experimentId, taskId } }: { job: Held["jobs"][number] }) {
  const look = "hover:underline";
  if (experimentId) {
    return (
      <Link to="/experiments/$experimentId" params={{ experimentId }} className={look} title={name}>
        {name}
      </Link>
    );
  }
  return (
    <Link to="/tasks/$taskId" params={{ taskId }} search={{}} className={look} title={name}>
      {name}
    </Link>
  );
}
