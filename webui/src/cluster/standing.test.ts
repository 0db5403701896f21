import { expect, test } from "vitest";
import type { Agent, Slot } from "../services/cluster";
import { heldFor, holders, sentence, tally, told, troubled, useOf } from "./standing";

const device = { id: 0, brand: "A100", uuid: "", type: "TYPE_CUDA" as const };
const container = { id: "c", parent: "t.1", state: "STATE_RUNNING", username: "anna", taskId: "t" };

function slot(id: string, more: Partial<Slot> = {}): Slot {
  return { id, device, enabled: true, draining: false, ...more } as Slot;
}

function agent(id: string, slots: Slot[], more: Partial<Agent> = {}): Agent {
  const named = Object.fromEntries(slots.map((each) => [each.id, each]));
  const base = { id, enabled: true, draining: false, connected: true, resourcePools: ["default"], tenaxVersion: "1" };
  return { ...base, slots: named, ...more } as Agent;
}

const known = { version: "1", pools: ["default"] };
const holding = { ...container, experimentId: 7, trialId: 12, description: "digits" } as Slot["container"];

test("each slot is in use, free or offline, and their sum is all", () => {
  const off = { enabled: false };
  const agents = [
    agent("a", [slot("0", { container: holding }), slot("1"), slot("2", off), slot("3", { ...off, draining: true })]),
    agent("b", [slot("0", { container: holding }), slot("1")], { enabled: false, draining: true }),
    agent("c", [slot("0", { container: holding }), slot("1")], { connected: false, enabled: false }),
  ];
  const uses = agents.map((each) => Object.values(each.slots ?? {}).map((of) => useOf(each, of)));
  expect(uses).toEqual([
    ["used", "free", "disabled", "draining"],
    ["leaving", "draining"],
    ["away", "away"],
  ]);
  expect(tally(agents)).toEqual({ used: 2, free: 1, offline: 5, total: 8 });
});

test("a slot says whose it is and what for", () => {
  const task = { ...container, description: "check" } as NonNullable<Slot["container"]>;
  const free = slot("1");
  const used = slot("0", { container: holding });
  expect(sentence(agent("a", [used]), used)).toBe(
    "Slot 0 of a, A100: in use by anna for experiment 7 digits (trial 12)",
  );
  expect(sentence(agent("a", [free]), free)).toBe("Slot 1 of a, A100: free");
  expect(heldFor(task)).toBe("task check");
  const many = agent("a", [used, slot("1", { container: holding }), slot("2", { container: task })]);
  expect(holders([many])).toEqual([
    {
      username: "anna",
      slots: 3,
      jobs: [
        { key: "experiment 7", name: "7 digits", experimentId: 7, taskId: "t", slots: 2 },
        { key: "task t", name: "check", experimentId: undefined, taskId: "t", slots: 1 },
      ],
    },
  ]);
});

test("what is wrong is said once for all agents of which it holds", () => {
  const agents = [
    agent("gone", [slot("0")], { connected: false, enabled: false }),
    agent("old", [slot("0"), slot("1", { enabled: false })], { tenaxVersion: "0.9" }),
    agent("lost", [slot("0")], { resourcePools: ["former"] }),
    agent("new", [], { tenaxVersion: "" }),
    agent("leaving", [], { enabled: false, draining: true }),
    agent("out", [], { enabled: false, draining: true, reason: "3 runs in a row failed here" }),
    agent("dead", [slot("0"), slot("1", { enabled: false, fault: "its driver has lost it" })]),
  ];
  const names = (trouble: Parameters<typeof troubled>[0]) => troubled(trouble, agents, known).map(({ id }) => id);
  expect(names("away")).toEqual(["gone"]);
  expect(names("disabled")).toEqual([]);
  expect(names("draining")).toEqual(["leaving"]);
  expect(names("failing")).toEqual(["out"]);
  expect(names("broken")).toEqual(["dead"]);
  expect(told("broken", troubled("broken", agents, known), known)).toEqual({
    what: "1 device of 1 agent is broken",
    help: "its driver has lost it",
  });
  expect(told("failing", troubled("failing", agents, known), known)).toEqual({
    what: "1 agent was taken out: what is running there may finish, nothing new starts",
    help: "3 runs in a row failed here. Once well: tenax agent enable AGENT",
  });
  expect(names("slots")).toEqual(["old"]);
  expect(names("version")).toEqual(["old"]);
  expect(names("pool")).toEqual(["lost"]);
  expect(told("slots", troubled("slots", agents, known), known).what).toBe("1 slot of 1 agent is switched off");
  expect(told("version", troubled("version", agents, known), known).help).toContain("0.9");
});
