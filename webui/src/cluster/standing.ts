/** How machines and their slots stand: what each slot does, how many there are of each, what is wrong. Pure. */

import { count } from "../format";
import type { Agent, Slot } from "../services/cluster";
import type { Trouble } from "./troubles";

/** `leaving`: in use, and nothing new comes after it. */
export type Use = "used" | "leaving" | "free" | "draining" | "disabled" | "broken" | "away";

export const USES: Record<Use, { word: string; shape: string }> = {
  used: { word: "in use", shape: "■" },
  leaving: { word: "in use, takes no more work", shape: "◐" },
  free: { word: "free", shape: "○" },
  draining: { word: "draining", shape: "◌" },
  disabled: { word: "disabled", shape: "⊘" },
  broken: { word: "broken", shape: "!" },
  away: { word: "away", shape: "✕" },
};

export function useOf(agent: Agent, slot: Slot): Use {
  if (agent.connected === false) return "away";
  const takes = agent.enabled && slot.enabled;
  if (slot.container) return takes ? "used" : "leaving";
  if (slot.fault) return "broken";
  if (takes) return "free";
  return agent.draining || slot.draining ? "draining" : "disabled";
}

/** By number, as the master sorts them. */
export function slotsOf(agent: Agent): Slot[] {
  return Object.values(agent.slots ?? {});
}

/** Each slot is one of these: `offline` is away, disabled or draining with nothing on it. */
export interface Tally {
  used: number;
  free: number;
  offline: number;
  total: number;
}

export function tally(agents: readonly Agent[]): Tally {
  const sum: Tally = { used: 0, free: 0, offline: 0, total: 0 };
  for (const agent of agents) {
    for (const slot of slotsOf(agent)) {
      const use = useOf(agent, slot);
      sum[use === "used" || use === "leaving" ? "used" : use === "free" ? "free" : "offline"] += 1;
      sum.total += 1;
    }
  }
  return sum;
}

type Container = NonNullable<Slot["container"]>;

/** `experiment 7 digits (trial 12)`, `task nightly check`. */
export function heldFor(container: Container): string {
  const { experimentId, trialId, description, taskId } = container;
  if (experimentId) return [`experiment ${experimentId}`, description, `(trial ${trialId})`].filter(Boolean).join(" ");
  return taskId ? `task ${description || taskId}` : "something";
}

/** All of one slot in a sentence. */
export function sentence(agent: Agent, slot: Slot): string {
  const { word } = USES[useOf(agent, slot)];
  const kind = kindOf(slot);
  const holder = slot.container && `by ${slot.container.username || "somebody"} for ${heldFor(slot.container)}`;
  const fault = slot.fault && `; ${slot.fault}`;
  return `Slot ${slot.id} of ${agent.id}${kind ? `, ${kind}` : ""}: ${word}${holder ? ` ${holder}` : ""}${fault ?? ""}`;
}

function kindOf(slot: Slot): string {
  return slot.device.brand || slot.device.type.replace("TYPE_", "").toLowerCase();
}

export function kindsOf(agent: Agent): string {
  return [...new Set(slotsOf(agent).map(kindOf))].join(", ") || "–";
}

/** What of a cluster is known beside its machines. */
export interface Known {
  /** Of the master. */
  version: string;
  pools: readonly string[];
}

/** The machines of which it holds. */
export function troubled(trouble: Trouble, agents: readonly Agent[], known: Known): Agent[] {
  return agents.filter((agent) => has(trouble, agent, known));
}

function has(trouble: Trouble, agent: Agent, known: Known): boolean {
  const here = agent.connected !== false;
  switch (trouble) {
    case "away":
      return !here;
    case "disabled":
      return here && !agent.enabled && !agent.draining;
    case "failing":
      return here && !!agent.reason;
    case "draining":
      return here && agent.draining && !agent.reason;
    case "broken":
      return slotsOf(agent).some((slot) => slot.fault);
    case "slots":
      return here && agent.enabled && slotsOf(agent).some((slot) => !slot.enabled && !slot.fault);
    case "version":
      return !!agent.tenaxVersion && agent.tenaxVersion !== known.version;
    case "foreign":
      return (agent.foreignContainers ?? []).length > 0;
    case "pool":
      return !agent.resourcePools.some((pool) => known.pools.includes(pool));
  }
}

/** What is wrong with some machines, what it means, and what helps. */
export function told(trouble: Trouble, agents: readonly Agent[], known: Known): { what: string; help: string } {
  const many = agents.length === 1 ? "1 agent" : `${count(agents.length)} agents`;
  const [is, takes, runs] = agents.length === 1 ? ["is", "it takes", "runs"] : ["are", "they take", "run"];
  const slots = agents.flatMap(slotsOf);
  const off = slots.filter((slot) => !slot.enabled && !slot.fault).length;
  switch (trouble) {
    case "away":
      return { what: `${many} ${is} away`, help: "Start the agent there again, or: tenax agent remove AGENT" };
    case "disabled":
      return { what: `${many} ${is} disabled: ${takes} no work`, help: "Once well: tenax agent enable AGENT" };
    case "failing":
      return {
        what: `${many} ${agents.length === 1 ? "was" : "were"} taken out: what is running there may finish, nothing new starts`,
        help: `${[...new Set(agents.map((each) => each.reason))].join("; ")}. Once well: tenax agent enable AGENT`,
      };
    case "broken": {
      const faults = slots.flatMap(({ fault }) => fault || []);
      return {
        what: `${faults.length === 1 ? "1 device" : `${count(faults.length)} devices`} of ${many} ${faults.length === 1 ? "is" : "are"} broken`,
        help: [...new Set(faults)].join("; "),
      };
    }
    case "draining":
      return {
        what: `${many} ${is} draining: what is running there may finish, nothing new starts`,
        help: "To take work again: tenax agent enable AGENT",
      };
    case "slots":
      return {
        what: `${off === 1 ? "1 slot" : `${count(off)} slots`} of ${many} ${off === 1 ? "is" : "are"} switched off`,
        help: "Enabled again under Change, Slots",
      };
    case "version":
      return {
        what: `${many} ${runs} a different version from the master, ${known.version}`,
        help: `Upgrade the agents: they are of version ${[...new Set(agents.map((each) => each.tenaxVersion))].sort().join(", ")}`,
      };
    case "foreign":
      return {
        what: `${many} with containers of another cluster, which this cluster does not end`,
        help: "Check there by hand",
      };
    case "pool":
      return {
        what: `${many} in a pool that the master does not have: nothing is placed there`,
        help: "Name the pool in the master's settings, or start the agent in another",
      };
  }
}

export interface Held {
  username: string;
  slots: number;
  /** The most slots first. */
  jobs: { key: string; name: string; experimentId?: number; taskId: string; slots: number }[];
}

/** Who has slots now, the most first. */
export function holders(agents: readonly Agent[]): Held[] {
  const users = new Map<string, { slots: number; jobs: Map<string, Held["jobs"][number]> }>();
  for (const agent of agents) {
    for (const { container } of slotsOf(agent)) {
      if (!container) continue;
      const name = container.username ?? "";
      const user = users.get(name) ?? { slots: 0, jobs: new Map() };
      users.set(name, user);
      user.slots += 1;
      const { experimentId, taskId = "", description } = container;
      const key = experimentId ? `experiment ${experimentId}` : `task ${taskId}`;
      const known = user.jobs.get(key);
      if (known) known.slots += 1;
      else {
        const shown = experimentId ? [experimentId, description].filter(Boolean).join(" ") : description || taskId;
        user.jobs.set(key, { key, name: shown, experimentId: experimentId ?? undefined, taskId, slots: 1 });
      }
    }
  }
  const most = (a: { slots: number }, b: { slots: number }) => b.slots - a.slots;
  return [...users]
    .map(([username, { slots, jobs }]) => ({ username, slots, jobs: [...jobs.values()].sort(most) }))
    .sort((a, b) => most(a, b) || a.username.localeCompare(b.username));
}
