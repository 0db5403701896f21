import { describe, expect, it } from "vitest";
import type { Trigger, Webhook } from "../../services/webhooks";
import { scopeOf, toldOf } from "./words";

const TRIGGERS: Trigger[] = [
  { triggerType: "TRIGGER_TYPE_TASK_LOG", condition: { regex: "out of memory" } },
  { triggerType: "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", condition: { state: "COMPLETED" } },
  { triggerType: "TRIGGER_TYPE_CUSTOM", condition: {} },
  { triggerType: "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", condition: { state: "ERROR" } },
];

function webhook(of: Partial<Webhook>): Webhook {
  return {
    ...{ id: 1, name: "chat", url: "https://chat", webhookType: "WEBHOOK_TYPE_SLACK", triggers: [] },
    mode: "WEBHOOK_MODE_WORKSPACE",
    ...of,
  };
}

describe("what a webhook is told of", () => {
  it("has its states first, whatever their order", () => {
    expect(toldOf(TRIGGERS)).toBe('Completed, Error; output like "out of memory"; alerts of scripts');
  });
  it("has events of machines in words, and one that is not known as it is", () => {
    const triggers = ["FAILED", "BUDGET_NEARLY", "LATER"].map((event): Trigger => {
      return { triggerType: "TRIGGER_TYPE_UNSPECIFIED", condition: { event } };
    });
    expect(toldOf(triggers)).toBe("machines: failed, budget nearly spent, LATER");
  });
  it("is of all, of a workspace, or of those that name it", () => {
    const scopes = [
      webhook({}),
      webhook({ workspaceId: 3 }),
      webhook({ workspaceId: 3, mode: "WEBHOOK_MODE_SPECIFIC" }),
      webhook({ mode: "WEBHOOK_MODE_SPECIFIC" }),
    ].map((each) => scopeOf(each, (id) => `workspace ${id}`));
    expect(scopes).toEqual([
      "all workspaces",
      "all of workspace 3",
      "those of workspace 3 that name it",
      "those of all workspaces that name it",
    ]);
  });
});
