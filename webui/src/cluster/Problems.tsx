/** What is wrong with machines: each thing once, how many it is about, and what helps; a click shows these alone. */

import { Link } from "@tanstack/react-router";
import { count } from "../format";
import type { Agent } from "../services/cluster";
import { type Known, told, troubled } from "./standing";
import { TROUBLES, type Trouble } from "./troubles";

/** Machines that are named. */
const NAMED = 6;
const MARKS: Record<Trouble, [string, string]> = {
  failing: ["✕", "text-bad"],
  broken: ["✕", "text-bad"],
  away: ["✕", "text-bad"],
  disabled: ["⊘", "text-off"],
  draining: ["◌", "text-wait"],
  slots: ["⊘", "text-off"],
  version: ["!", "text-wait"],
  foreign: ["!", "text-wait"],
  pool: ["✕", "text-bad"],
};

export function Problems(props: { agents: Agent[]; known: Known; search: { pool?: string; show?: Trouble } }) {
  const { agents, known, search } = props;
  const found = TROUBLES.map((trouble) => ({ trouble, of: troubled(trouble, agents, known) })).filter(
    ({ of }) => of.length > 0,
  );
  if (found.length === 0) {
    return (
      <p className="text-ok">
        <span aria-hidden="true">✓ </span>
        {agents.length === 1 ? "The agent is" : `All ${count(agents.length)} agents are`} there, and all slots take work
      </p>
    );
  }
  return (
    <ul aria-label="Problems" className="flex flex-col rounded-md border border-line">
      {found.map(({ trouble, of }) => {
        const { what, help } = told(trouble, of, known);
        const [shape, tone] = MARKS[trouble];
        const here = search.show === trouble;
        return (
          <li
            key={trouble}
            className="flex min-h-9 flex-wrap items-center gap-x-3 gap-y-0.5 border-line border-b px-3 py-1 last:border-b-0"
          >
            <Link
              to="/cluster"
              search={{ pool: search.pool, show: here ? undefined : trouble }}
              aria-current={here ? "true" : undefined}
              className={`inline-flex min-h-6 items-center font-medium underline-offset-2 hover:underline ${tone} ${here ? "underline" : ""}`}
            >
              <span aria-hidden="true" className="mr-1.5 inline-block w-3.5 text-center">
                {shape}
              </span>
              {what}
            </Link>
            <span className="min-w-0 break-words">
              {of
                .slice(0, NAMED)
                .map((agent) => agent.id)
                .join(", ")}
              {of.length > NAMED && ` and ${count(of.length - NAMED)} more`}
            </span>
            <span className="text-dim">{help}</span>
          </li>
        );
      })}
    </ul>
  );
}
