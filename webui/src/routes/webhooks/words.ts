/** What webhooks are told of, in words. Pure. */

import { appearance } from "../../services/states";
import type { Trigger, Webhook } from "../../services/webhooks";

type State = Parameters<typeof appearance>[0];

/** States of an experiment of which one may be told. */
export const TOLD_STATES = ["ACTIVE", "PAUSED", "COMPLETED", "CANCELED", "ERROR"] as const;

/** Events of rented machines, of which only webhooks of all workspaces may be told. */
export const TOLD_MACHINES: Readonly<Record<string, string>> = {
  LAUNCHED: "launched",
  FAILED: "failed",
  ENDED: "ended",
  NOTICE: "notice of its cloud",
  ORPHAN: "found without a row",
  OFFER_OFF: "offer turned off",
  BUDGET_NEARLY: "budget nearly spent",
  BUDGET_USED_UP: "budget used up",
};

export function wordOf(state: string): string {
  return appearance(`STATE_${state}` as State).word;
}

/** As in `Completed, Error; output like "out of memory"`. */
export function toldOf(triggers: readonly Trigger[]): string {
  const of = (type: Trigger["triggerType"]) => triggers.filter(({ triggerType }) => triggerType === type);
  const states = of("TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE").map(({ condition }) => wordOf(String(condition.state)));
  const lines = of("TRIGGER_TYPE_TASK_LOG").map(({ condition }) => `output like "${String(condition.regex)}"`);
  const events = of("TRIGGER_TYPE_UNSPECIFIED").flatMap(({ condition: { event } }) => (event ? [String(event)] : []));
  const machines =
    events.length > 0 ? [`machines: ${events.map((event) => TOLD_MACHINES[event] ?? event).join(", ")}`] : [];
  const alerts = of("TRIGGER_TYPE_CUSTOM").length > 0 ? ["alerts of scripts"] : [];
  return [...(states.length > 0 ? [states.join(", ")] : []), ...lines, ...machines, ...alerts].join("; ");
}

/** Of which experiments; `nameOf`: of a workspace. */
export function scopeOf({ workspaceId, mode }: Webhook, nameOf: (workspaceId: number) => string): string {
  const where = workspaceId ? nameOf(workspaceId) : "all workspaces";
  return mode === "WEBHOOK_MODE_SPECIFIC" ? `those of ${where} that name it` : workspaceId ? `all of ${where}` : where;
}
