/** Finds charts by part of a metric's name, or by a pattern. */

import { SearchField } from "../ui/SearchField";
import { named } from "./named";

interface MetricFinderProps {
  text: string;
  isPattern: boolean;
  onChange: (changed: { text?: string; isPattern?: boolean }) => void;
}

export function MetricFinder({ text, isPattern, onChange }: MetricFinderProps) {
  const isWrong = named(text, isPattern) === undefined;
  return (
    <span className="inline-flex flex-wrap items-center gap-2">
      <SearchField
        value={text}
        label={isPattern ? "Pattern for metric names" : "Part of a metric name"}
        onChange={(to) => onChange({ text: to })}
      />
      <label className="inline-flex min-h-7 items-center gap-1 text-dim text-sm">
        <input
          type="checkbox"
          className="size-4 accent-(--accent)"
          checked={isPattern}
          onChange={(event) => onChange({ isPattern: event.target.checked })}
        />
        Pattern
      </label>
      {isWrong && (
        <span role="status" className="text-bad text-sm">
          That is not a valid pattern yet: all are shown.
        </span>
      )}
    </span>
  );
}
