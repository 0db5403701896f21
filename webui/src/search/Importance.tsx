/** Which hyperparameters decided about the metric, as bars; computed by the master. */

import { count, percent } from "../format";
import type { Importance as Shares } from "../services/searching";
import { visible } from "../visible";

export function Importance({ shares }: { shares: Shares }) {
  const { trials, minTrials, hyperparameters } = shares;
  if (hyperparameters.length === 0) {
    return (
      <p className="text-dim">
        {trials < minTrials
          ? `At least ${minTrials} trials with a ${shares.metric || "metric"} are needed to tell what matters; ${count(trials)} ${trials === 1 ? "has" : "have"} one.`
          : `${count(trials)} trials, and none of the hyperparameters helps to predict the ${shares.metric || "metric"}.`}
      </p>
    );
  }
  return (
    <div className="flex flex-col gap-2">
      <ul aria-label="Importance of hyperparameters" className="flex flex-col gap-1.5">
        {hyperparameters.map(({ name, importance, correlation }) => (
          <li
            key={name}
            data-importance={importance}
            className="grid grid-cols-[minmax(80px,1fr)_minmax(80px,2fr)_48px_120px] items-center gap-2"
          >
            <span className="truncate" title={visible(name)}>
              {visible(name)}
            </span>
            <span aria-hidden="true" className="h-2.5 overflow-hidden rounded-sm bg-sunken">
              <span className="block h-full bg-accent" style={{ width: `${importance * 100}%` }} />
            </span>
            <span className="text-right">{percent(importance)}</span>
            <span className="truncate text-dim text-sm" title="rank correlation with the metric, from −1 to 1">
              {correlation === null || correlation === undefined
                ? ""
                : `correlation ${correlation.toFixed(2).replace("-", "−")}`}
            </span>
          </li>
        ))}
      </ul>
      <p className="text-dim text-sm">
        From {count(trials)} trials: how much worse their {shares.metric} is predicted when the values of one are
        shuffled.
      </p>
    </div>
  );
}
