/** What administrators can do to machines and their slots; all of it can be taken back. */

import { type QueryClient, useQuery, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { heldFor } from "../cluster/standing";
import { bytes } from "../format";
import { type Command, useCommands } from "../keys/commands";
import { type Switch, switchAgent, switchSlot } from "../services/actions";
import { type Agent, agentsQuery, type Slot } from "../services/cluster";
import { meQuery } from "../services/session";
import { Button } from "../ui/Button";
import { Dialog, DialogBody } from "../ui/Dialog";
import { Menu, MenuItem } from "../ui/Menu";
import { openDialog, say } from "../ui/overlays";
import { outcome, refresh } from "./perform";

/** Machines that the palette knows of. */
const MAX_LISTED = 50;

const MANNERS: Record<Switch, { title: string; past: string; hint: string }> = {
  enable: { title: "Enable", past: "Enabled", hint: "it takes work" },
  drain: { title: "Drain", past: "Draining", hint: "no new work; what is running may finish" },
  disable: { title: "Disable", past: "Disabled", hint: "no new work; what is running moves elsewhere" },
};

interface Switched {
  enabled: boolean;
  draining: boolean;
}

/** How it is set now. */
function setTo({ enabled, draining }: Switched): Switch {
  return draining ? "drain" : enabled ? "enable" : "disable";
}

interface Switchable {
  what: string;
  /** How it is set; undefined where the master does not say: a machine that is away counts as disabled. */
  now?: Switch;
  call: (to: Switch) => Promise<void>;
  /** How it is shown before the master has answered. */
  shown: (agent: Agent, now: Switched) => Agent;
}

function machine(agent: Agent): Switchable {
  return {
    what: `agent ${agent.id}`,
    now: agent.connected === false && !agent.draining ? undefined : setTo(agent),
    call: (to) => switchAgent(agent.id, to),
    shown: (each, now) => (each.id === agent.id ? { ...each, ...now } : each),
  };
}

function device(agent: Agent, slot: Slot): Switchable {
  return {
    what: `slot ${slot.id} of ${agent.id}`,
    // Of a machine that takes no work every slot counts as disabled.
    now: slot.enabled || slot.draining || agent.enabled ? setTo(slot) : undefined,
    call: (to) => switchSlot(agent.id, Number(slot.id), to),
    shown: (each, now) => {
      if (each.id !== agent.id) return each;
      const slots = Object.entries(each.slots ?? {}).map(([key, of]) => [
        key,
        of.id === slot.id ? { ...of, ...now } : of,
      ]);
      return { ...each, slots: Object.fromEntries(slots) };
    },
  };
}

function others(it: Switchable): Switch[] {
  return (["enable", "drain", "disable"] as const).filter((each) => each !== it.now);
}

async function change(client: QueryClient, it: Switchable, to: Switch, undoable = true): Promise<void> {
  await client.cancelQueries({ queryKey: agentsQuery.queryKey });
  const former = client.getQueryData<Agent[]>(agentsQuery.queryKey);
  const now = { enabled: to === "enable", draining: to === "drain" };
  client.setQueryData<Agent[]>(agentsQuery.queryKey, (agents) => agents?.map((each) => it.shown(each, now)));
  const { title, past } = MANNERS[to];
  const done = await outcome(
    it.call(to).then(() => true),
    `${title} ${it.what}`,
  );
  if (done) {
    const before = it.now;
    const undo = before && undoable ? () => void change(client, it, before, false) : undefined;
    say({ text: `${past} ${it.what}`, undo });
  } else client.setQueryData(agentsQuery.queryKey, former);
  await refresh(client);
}

export function useAgentCommands(agents: Agent[]): void {
  const client = useQueryClient();
  const me = useSuspenseQuery(meQuery).data;
  const commands = agents.slice(0, MAX_LISTED).flatMap((agent): Command[] => {
    const it = machine(agent);
    const switches = others(it).map((to) => ({
      title: `${MANNERS[to].title} ${it.what}`,
      run: () => void change(client, it, to),
    }));
    return [...switches, { title: `Slots of ${it.what}`, run: () => openSlots(agent.id) }];
  });
  useCommands(me.admin ? commands : []);
}

export function openSlots(agentId: string): void {
  openDialog((close) => <Slots agentId={agentId} onClose={close} />);
}

export function AgentActions({ agent }: { agent: Agent }) {
  const client = useQueryClient();
  const me = useSuspenseQuery(meQuery).data;
  if (!me.admin) return <span className="text-dim">–</span>;
  const it = machine(agent);
  return (
    <Menu framed label={`Actions on agent ${agent.id}`} trigger="Change ▾">
      {others(it).map((to) => (
        <MenuItem key={to} onSelect={() => void change(client, it, to)}>
          {MANNERS[to].title} <span className="text-dim">: {MANNERS[to].hint}</span>
        </MenuItem>
      ))}
      <MenuItem onSelect={() => openSlots(agent.id)}>Slots…</MenuItem>
    </Menu>
  );
}

/** Each slot of a machine, and what it may be set to. */
function Slots({ agentId, onClose }: { agentId: string; onClose: () => void }) {
  const client = useQueryClient();
  const me = useSuspenseQuery(meQuery).data;
  const agent = useQuery(agentsQuery).data?.find((each) => each.id === agentId);
  const slots = Object.values(agent?.slots ?? {});
  const labels = Object.entries(agent?.labels ?? {}).sort(([one], [other]) => one.localeCompare(other));
  return (
    <Dialog title={`Slots of ${agentId}`} onClose={onClose}>
      <DialogBody buttons={<Button onClick={onClose}>Close</Button>}>
        {labels.length > 0 && (
          <p className="text-dim">Labels: {labels.map(([key, value]) => `${key}=${value}`).join(", ")}</p>
        )}
        {slots.length === 0 && <p className="text-dim">It has no slots.</p>}
        <ul className="flex flex-col">
          {agent &&
            slots.map((slot) => (
              <li
                key={slot.id}
                className="flex min-h-9 flex-wrap items-center gap-2 border-line border-b py-1 last:border-b-0"
              >
                <span className="min-w-0 flex-1 truncate">
                  Slot {slot.id} <span className="text-dim">{made(slot)}</span>
                </span>
                <span className="text-dim">{standing(slot)}</span>
                {me.admin &&
                  others(device(agent, slot)).map((to) => (
                    <Button
                      key={to}
                      aria-label={`${MANNERS[to].title} slot ${slot.id}`}
                      onClick={() => void change(client, device(agent, slot), to)}
                    >
                      {MANNERS[to].title}
                    </Button>
                  ))}
              </li>
            ))}
        </ul>
      </DialogBody>
    </Dialog>
  );
}

/** What it is, for people. */
function made({ device }: Slot): string {
  return device.memory ? `${device.brand}, ${bytes(device.memory)}` : device.brand;
}

function standing(slot: Slot): string {
  if (slot.draining) return "draining";
  if (!slot.enabled) return "disabled";
  const { container } = slot;
  if (!container) return "free";
  return container.username ? `in use by ${container.username} for ${heldFor(container)}` : "in use";
}
