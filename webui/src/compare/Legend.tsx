/** The trials that are compared: how each is drawn, how it stands, and an eye that hides its lines. */

import { Link } from "@tanstack/react-router";
import { hovering, useIsHovered } from "../charts/hovered";
import type { Look } from "../charts/palette";
import type { ComparedTrial } from "../services/comparing";
import { StateMark } from "../ui/State";
import { Value } from "../ui/values";
import { visible } from "../visible";

interface LegendProps {
  trials: ComparedTrial[];
  looks: ReadonlyMap<number, Look>;
  hidden: ReadonlySet<number>;
  onHide: (trial: number, hide: boolean) => void;
  onRemove: (trial: number) => void;
}

export function Legend(props: LegendProps) {
  return (
    <section
      aria-label="Compared trials"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard.
      tabIndex={0}
      className="max-h-60 shrink-0 overflow-auto rounded-md border border-line"
    >
      <table className="w-full border-collapse">
        <thead className="sticky top-0 z-10">
          <tr className="border-line border-b bg-raised text-left text-dim text-sm">
            {["Shown", "Trial", "Experiment", "State", "Objective", "Metric", ""].map((title) => (
              <th
                key={title}
                scope="col"
                className={`h-[30px] whitespace-nowrap px-2 font-medium ${title === "Objective" ? "text-right" : ""}`}
              >
                {title || <span className="sr-only">Remove</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.trials.map((trial) => (
            <Entry key={trial.id} trial={trial} {...props} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Entry({ trial, looks, hidden, onHide, onRemove }: LegendProps & { trial: ComparedTrial }) {
  const { id, experiment } = trial;
  const isHidden = hidden.has(id);
  const isHovered = useIsHovered(id);
  return (
    <tr
      data-trial={id}
      data-hovered={isHovered || undefined}
      className={`border-line border-b last:border-b-0 ${isHovered ? "bg-hover" : ""}`}
      {...hovering(id)}
    >
      <td className="h-8 px-2">
        <button
          type="button"
          aria-pressed={!isHidden}
          aria-label={`Show the lines of trial ${id}`}
          title={isHidden ? "Show its lines" : "Hide its lines"}
          className="flex min-h-6 min-w-14 items-center gap-2 rounded-md px-1 hover:bg-hover"
          onClick={() => onHide(id, !isHidden)}
        >
          <Swatch look={looks.get(id)} hidden={isHidden} />
          <span aria-hidden="true" className={isHidden ? "text-dim" : ""}>
            {isHidden ? "○" : "◉"}
          </span>
        </button>
      </td>
      <td className="whitespace-nowrap px-2">
        <Link to="/trials/$trialId" params={{ trialId: id }} className="underline hover:text-accent">
          {id}
        </Link>
      </td>
      <td className="min-w-40 max-w-0 truncate px-2" title={visible(experiment.name)}>
        <Link
          to="/experiments/$experimentId"
          params={{ experimentId: experiment.id }}
          className="hover:underline"
        >{`${experiment.id} ${visible(experiment.name)}`}</Link>
      </td>
      <td className="px-2">
        <StateMark state={trial.state} />
      </td>
      <td className="px-2 text-right">
        <Value value={trial.searcherMetricValue} />
      </td>
      <td
        className="max-w-40 truncate px-2 text-dim"
        title={experiment.searcherMetric && visible(experiment.searcherMetric)}
      >
        {visible(experiment.searcherMetric || "–")}
      </td>
      <td className="px-2 text-right">
        <button
          type="button"
          aria-label={`Compare without trial ${id}`}
          className="min-h-6 min-w-6 rounded-md text-dim hover:bg-hover hover:text-text"
          onClick={() => onRemove(id)}
        >
          ✕
        </button>
      </td>
    </tr>
  );
}

/** How its lines are drawn. */
export function Swatch({ look, hidden = false }: { look?: Look; hidden?: boolean }) {
  return (
    <svg aria-hidden="true" width="22" height="10" className={`shrink-0 ${hidden ? "opacity-30" : ""}`}>
      <line
        x1="0"
        x2="22"
        y1="5"
        y2="5"
        stroke={look?.colour ?? "var(--dim)"}
        strokeWidth="2.5"
        strokeDasharray={look?.dash?.join(" ")}
      />
    </svg>
  );
}
