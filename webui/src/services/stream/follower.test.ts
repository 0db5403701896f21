import { beforeEach, describe, expect, it } from "vitest";
import { Follower, type World } from "./follower";
import { Hub } from "./hub";
import type { Change, Link, ToTab } from "./messages";

const MASTER = new URL("http://master.test/prefix/");

/** A request of a stream, answered by the test. */
class Asked {
  readonly url: URL;
  readonly signal: AbortSignal;
  private writer: WritableStreamDefaultWriter<Uint8Array> | undefined;

  constructor(
    url: string,
    init: RequestInit,
    private readonly answer: (reply: Response | Error) => void,
  ) {
    this.url = new URL(url);
    this.signal = init.signal as AbortSignal;
    this.signal.addEventListener("abort", () => {
      answer(new DOMException("aborted", "AbortError"));
      void this.writer?.abort().catch(() => {});
    });
  }

  get topics(): string[] {
    return this.url.searchParams.getAll("topic");
  }

  async hello(cursor: string, refused: Record<string, string> = {}): Promise<void> {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    this.writer = writable.getWriter();
    this.answer(new Response(readable, { status: 200 }));
    const topics = this.topics.filter((topic) => !(topic in refused));
    await this.event("hello", { version: "1", schema: "s", cursor, topics, refused }, cursor);
  }

  async event(name: string, data: unknown, id?: string): Promise<void> {
    const place = id === undefined ? "" : `id: ${id}\n`;
    void this.writer?.write(new TextEncoder().encode(`${place}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`));
    await settled();
  }

  async end(): Promise<void> {
    void this.writer?.close();
    await settled();
  }

  async refuse(status: number, headers: Record<string, string> = {}): Promise<void> {
    this.answer(new Response(JSON.stringify({ message: "no" }), { status, headers }));
    await settled();
  }

  async fail(): Promise<void> {
    this.answer(new TypeError("connection refused"));
    await settled();
  }
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 30; turn++) await Promise.resolve();
  await new Promise((resolve) => setTimeout(resolve, 0));
}

/** Time goes on when the test says so. */
class Made implements World {
  time = 1000;
  asked: Asked[] = [];
  private timers = new Map<number, { at: number; run: () => void }>();
  private count = 0;

  fetch = (url: string, init: RequestInit) =>
    new Promise<Response>((resolve, reject) => {
      this.asked.push(new Asked(url, init, (reply) => (reply instanceof Response ? resolve(reply) : reject(reply))));
    });
  now = () => this.time;
  random = () => 1;
  after = (ms: number, run: () => void) => {
    const id = ++this.count;
    this.timers.set(id, { at: this.time + ms, run });
    return () => void this.timers.delete(id);
  };

  async pass(ms: number): Promise<void> {
    const until = this.time + ms;
    for (;;) {
      const [next] = [...this.timers].filter(([, { at }]) => at <= until).sort(([, a], [, b]) => a.at - b.at);
      if (!next) break;
      this.timers.delete(next[0]);
      this.time = Math.max(this.time, next[1].at);
      next[1].run();
      await settled();
    }
    this.time = until;
  }

  get last(): Asked {
    return this.asked.at(-1) as Asked;
  }
}

let world: Made;
beforeEach(() => {
  world = new Made();
});

/** What a follower hears, as a list. */
function listening() {
  const heard: unknown[] = [];
  const follower = new Follower(
    MASTER,
    {
      hello: (_, fresh) => heard.push(["fresh", ...fresh]),
      changes: (changes) => heard.push(...changes.map((change) => ["change", change.id])),
      reset: (topics) => heard.push(["reset", ...topics]),
      refused: (topics) => heard.push(["refused", ...topics]),
      ended: (reason) => heard.push(["ended", reason]),
      link: (link: Link) => heard.push(link.state),
    },
    world,
  );
  const taken = () => heard.splice(0);
  return { follower, taken };
}

const change = (id: number): Change => ({ kind: "experiment", id });

describe("a follower", () => {
  it("follows below the master's prefix, and hands on what comes", async () => {
    const { follower, taken } = listening();
    follower.follow(["experiments", "agents"]);
    await world.pass(20);
    expect(world.last.url.pathname).toBe("/prefix/api/v1/events");
    expect(world.last.topics).toEqual(["experiments", "agents"]);
    expect(world.last.url.searchParams.has("cursor")).toBe(false);
    await world.last.hello("e-1");
    await world.last.event("change", change(7), "e-2");
    expect(taken()).toEqual(["connecting", "live", ["fresh", "experiments", "agents"], ["change", 7]]);
    expect(follower.follows("agents")).toBe(true);
  });

  it("goes on from its position after a break, ever later while nobody answers", async () => {
    const { follower, taken } = listening();
    follower.follow(["experiments"]);
    await world.pass(20);
    await world.last.hello("e-1");
    await world.last.event("change", change(7), "e-5");
    taken();
    await world.last.end();
    expect(taken()).toEqual(["down"]);
    const gaps: number[] = [];
    for (let attempt = 0; attempt < 4; attempt++) {
      const began = world.time;
      const before = world.asked.length;
      while (world.asked.length === before) await world.pass(100);
      gaps.push(world.time - began);
      await world.last.fail();
    }
    expect(gaps).toEqual([500, 1000, 2000, 3000]);
    // A proxy in between answers for a master that is started again.
    await world.pass(3000);
    await world.last.refuse(502);
    await world.pass(3000);
    expect(world.asked.length).toBe(7);
    expect(world.last.url.searchParams.get("cursor")).toBe("e-5");
    taken();
    await world.last.hello("e-5");
    await world.last.event("reset", { topics: ["experiments"] });
    // It was followed before: nothing of it is fresh, but something was missed.
    expect(taken()).toEqual(["live", ["fresh"], ["reset", "experiments"]]);
  });

  it("takes other topics by another request, and closes the former after its hello", async () => {
    const { follower, taken } = listening();
    follower.follow(["experiments"]);
    await world.pass(20);
    const former = world.last;
    await former.hello("e-1");
    follower.follow(["experiments", "agents"]);
    await world.pass(20);
    expect(world.last).not.toBe(former);
    expect(world.last.url.searchParams.get("cursor")).toBe("e-1");
    expect(former.signal.aborted).toBe(false);
    taken();
    await former.event("change", change(3), "e-2");
    await world.last.hello("e-2");
    expect(former.signal.aborted).toBe(true);
    // The master calls the new ones reset: who follows them was told already.
    await world.last.event("reset", { topics: ["agents"] });
    expect(taken()).toEqual([["change", 3], "live", ["fresh", "agents"]]);
    await world.last.event("reset", { topics: ["agents"] });
    expect(taken()).toEqual([["reset", "agents"]]);
  });

  it("asks for nothing while nobody looks, and closes what is open", async () => {
    const { follower, taken } = listening();
    follower.follow(["experiments"]);
    await world.pass(20);
    await world.last.hello("e-1");
    follower.follow([]);
    await world.pass(60_000);
    expect(world.last.signal.aborted).toBe(true);
    expect(taken().at(-1)).toBe("idle");
    await world.pass(3_600_000);
    expect(world.asked.length).toBe(1);
    follower.follow(["experiments"]);
    await world.pass(20);
    expect(world.last.url.searchParams.get("cursor")).toBe("e-1");
  });

  it("is not asked for again while nobody looks and the master is away", async () => {
    const { follower } = listening();
    follower.follow(["experiments"]);
    await world.pass(20);
    await world.last.hello("e-1");
    follower.follow([]);
    await world.last.end();
    await world.pass(3_600_000);
    expect(world.asked.length).toBe(1);
  });

  it("ends with the session, without a loop", async () => {
    const { follower, taken } = listening();
    follower.follow(["experiments"]);
    await world.pass(20);
    await world.last.hello("e-1");
    await world.last.event("end", { reason: "logged out" });
    expect(taken().slice(-2)).toEqual(["idle", ["ended", "logged out"]]);
    await world.pass(3_600_000);
    expect(world.asked.length).toBe(1);
    // Somebody who has logged in looks again: from the beginning.
    follower.follow([]);
    follower.follow(["experiments"]);
    await world.pass(20);
    expect(world.asked.length).toBe(2);
    expect(world.last.url.searchParams.has("cursor")).toBe(false);
    await world.last.refuse(401);
    expect(taken().at(-1)).toEqual(["ended", "no"]);
    await world.pass(3_600_000);
    expect(world.asked.length).toBe(2);
  });

  it("waits as long as the master says before it asks again", async () => {
    const { follower, taken } = listening();
    follower.follow(["experiments"]);
    await world.pass(20);
    await world.last.refuse(429, { "Retry-After": "30" });
    expect(taken()).toEqual(["connecting", "down"]);
    await world.pass(29_000);
    follower.follow(["experiments"]);
    await world.pass(20);
    expect(world.asked.length).toBe(1);
    await world.pass(20_000);
    expect(world.asked.length).toBe(2);
    follower.nudge();
  });

  it("takes what is silent for dead", async () => {
    const { follower, taken } = listening();
    follower.follow(["experiments"]);
    await world.pass(20);
    const silent = world.last;
    await silent.hello("e-1");
    taken();
    await world.pass(14_000);
    expect(taken()).toEqual([]);
    await world.pass(2000);
    expect(silent.signal.aborted).toBe(true);
    expect(world.asked.length).toBe(2);
  });

  it("does not ask again for what was refused", async () => {
    const { follower, taken } = listening();
    follower.follow(["experiments", "experiments/9"]);
    await world.pass(20);
    await world.last.hello("e-1", { "experiments/9": "not found" });
    expect(taken().at(-1)).toEqual(["refused", "experiments/9"]);
    follower.follow(["experiments", "experiments/9"]);
    await world.pass(60);
    expect(world.asked.length).toBe(1);
    expect(follower.follows("experiments/9")).toBe(false);
  });
});

describe("a hub", () => {
  function tab(hub: Hub) {
    const messages: ToTab[] = [];
    const send = hub.join((message) => messages.push(message));
    return { send, taken: (kind: ToTab["kind"]) => messages.splice(0).filter((message) => message.kind === kind) };
  }

  it("has one stream for all tabs, and tells each what it follows", async () => {
    const hub = new Hub(MASTER, world);
    const [one, two] = [tab(hub), tab(hub)];
    one.send({ kind: "follow", topics: ["experiments"] });
    two.send({ kind: "follow", topics: ["experiments", "agents"] });
    await world.pass(20);
    expect(world.asked.length).toBe(1);
    await world.last.hello("e-1");
    expect(one.taken("followed")).toEqual([{ kind: "followed", topics: ["experiments"] }]);
    expect(two.taken("followed")).toEqual([{ kind: "followed", topics: ["experiments", "agents"] }]);
    const late = tab(hub);
    late.send({ kind: "follow", topics: ["agents"] });
    expect(late.taken("followed")).toEqual([{ kind: "followed", topics: ["agents"] }]);
    await world.pass(60);
    expect(world.asked.length).toBe(1);
    await world.last.event("change", change(7), "e-2");
    for (const each of [one, two, late]) expect(each.taken("changes").length).toBe(1);
  });

  it("tells a tab that comes back that it has missed something", async () => {
    const hub = new Hub(MASTER, world);
    const [one, two] = [tab(hub), tab(hub)];
    for (const each of [one, two]) each.send({ kind: "follow", topics: ["experiments"] });
    await world.pass(20);
    await world.last.hello("e-1");
    one.send({ kind: "follow", topics: [] });
    one.taken("changes");
    await world.last.event("change", change(7), "e-2");
    expect(one.taken("changes")).toEqual([]);
    one.send({ kind: "follow", topics: ["experiments"] });
    expect(one.taken("followed")).toEqual([{ kind: "followed", topics: ["experiments"] }]);
    // Said again it is nothing new.
    one.send({ kind: "follow", topics: ["experiments"] });
    expect(one.taken("followed")).toEqual([]);
  });

  it("forgets a tab that has gone without a word", async () => {
    const hub = new Hub(MASTER, world);
    const [gone, here] = [tab(hub), tab(hub)];
    gone.send({ kind: "follow", topics: ["agents"] });
    here.send({ kind: "follow", topics: ["experiments"] });
    await world.pass(20);
    await world.last.hello("e-1");
    await world.pass(30_000);
    await world.last.event("change", change(1), "e-2");
    await world.pass(30_000);
    await world.last.event("change", change(2), "e-3");
    await world.pass(35_000);
    here.send({ kind: "follow", topics: ["experiments"] });
    await world.pass(3000);
    expect(world.last.topics).toEqual(["experiments"]);
  });
});
