import type { State } from "../services/experiments";
import { appearance, type Tone } from "../services/states";

export const TONES: Record<Tone, string> = {
  ok: "text-ok",
  run: "text-run",
  wait: "text-wait",
  bad: "text-bad",
  off: "text-off",
};

/** A state as shape, word and colour. */
export function StateMark({ state, reason }: { state: State; reason?: string }) {
  const { shape, word, tone } = appearance(state);
  return (
    <span className={`inline-flex items-center gap-1.5 whitespace-nowrap ${TONES[tone]}`} title={reason || undefined}>
      <span aria-hidden="true" className="inline-block w-3.5 text-center">
        {shape}
      </span>
      {word}
    </span>
  );
}
