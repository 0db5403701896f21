/**
 * One stream at a time: it is opened, read, and opened again where it broke off, with the topics that are asked for.
 *
 * Rules it keeps:
 *
 * - other topics are another request with the position of the stream before, which is closed after the new one's hello;
 * - after a break it goes on from its position; of what cannot be told any more the master says `reset`;
 * - while nothing is asked for nothing is opened, and what is open is closed after a moment (`IDLE_MS`);
 * - what is silent for longer than its heartbeat is dead (`SILENT_MS`);
 * - once the session has ended nothing is tried until somebody asks again.
 */

import { sessionEnded } from "../ended";
import { reconnectIn, refusedFor } from "./backoff";
import { type Change, type Hello, type Link, MAX_TOPICS } from "./messages";
import { EventParser, type Sent } from "./sse";

const IDLE_MS = 20_000;
/** The master says something every 5 s (`HEARTBEAT_S`). */
const SILENT_MS = 15_000;
/** What is asked for within it is one request. */
const GATHER_MS = 10;
/** What is not asked for any more is let go of so much later. */
const SHRINK_MS = 2000;

/** What a follower hears. */
export interface Ears {
  /** `fresh`: topics that were not followed up to now. */
  hello(hello: Hello, fresh: string[]): void;
  changes(changes: Change[]): void;
  reset(topics: string[]): void;
  refused(topics: string[]): void;
  ended(reason: string): void;
  link(link: Link): void;
}

/** The world around it; in tests another one. */
export interface World {
  fetch(url: string, init: RequestInit): Promise<Response>;
  now(): number;
  random(): number;
  after(ms: number, run: () => void): () => void;
}

export const browser: World = {
  fetch: (url, init) => fetch(url, init),
  now: () => Date.now(),
  random: () => Math.random(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

interface Session {
  /** Asked for; of these the master may have refused some. */
  topics: Set<string>;
  followed: Set<string>;
  abort: AbortController;
  /** Topics that the master will call `reset` because they are new here: who follows them was told. */
  expected: Set<string>;
}

export class Follower {
  private asked: string[] = [];
  /** The stream that has said hello, and the one that has not yet. */
  private current: Session | undefined;
  private next: Session | undefined;
  private cursor = "";
  /** Topics of which everything up to `cursor` was told. */
  private known = new Set<string>();
  private failures = 0;
  private heardAt: number;
  private link: Link = { state: "idle" };
  private cancelOpen: (() => void) | undefined;
  private cancelSilence: (() => void) | undefined;

  constructor(
    private readonly master: URL,
    private readonly ears: Ears,
    private readonly world: World = browser,
  ) {
    this.heardAt = world.now();
  }

  /** Whether nothing of a topic is missed now. */
  follows(topic: string): boolean {
    return this.current?.followed.has(topic) ?? false;
  }

  /** The newest standing, for who joins. */
  get standing(): Link {
    return this.link;
  }

  /** Follow exactly these; none: nobody looks. */
  follow(topics: string[]): void {
    const before = this.asked;
    this.asked = topics.slice(0, MAX_TOPICS);
    if (this.asked.length === 0) {
      this.openIn(IDLE_MS);
      return;
    }
    const has = (this.next ?? this.current)?.topics;
    if (this.asked.some((topic) => !has?.has(topic))) {
      // What was refused a moment ago is not asked for again at once.
      const waits = this.failures > 0 && before.length > 0;
      if (!waits || !this.cancelOpen) this.openIn(waits ? reconnectIn(this.failures, this.world.random()) : GATHER_MS);
    } else if (has && has.size > this.asked.length) this.openIn(SHRINK_MS);
    else if (!this.next) this.openNever();
  }

  /** Somebody looks again: an attempt that waits is made now. */
  nudge(): void {
    if (this.link.state === "down" && this.cancelOpen && this.asked.length > 0) this.openIn(0);
  }

  private openNever(): void {
    this.cancelOpen?.();
    this.cancelOpen = undefined;
  }

  private openIn(ms: number): void {
    this.openNever();
    this.cancelOpen = this.world.after(ms, () => {
      this.cancelOpen = undefined;
      if (this.asked.length > 0) void this.open();
      else this.close();
    });
  }

  private close(): void {
    this.current?.abort.abort();
    this.next?.abort.abort();
    this.current = this.next = undefined;
    this.cancelSilence?.();
    this.failures = 0;
    this.say({ state: "idle" });
  }

  private async open(): Promise<void> {
    this.next?.abort.abort();
    const session: Session = {
      topics: new Set(this.asked),
      followed: new Set(),
      abort: new AbortController(),
      expected: new Set(),
    };
    this.next = session;
    if (this.link.state === "idle") this.say({ state: "connecting" });
    this.listen(session);
    try {
      const url = new URL("api/v1/events", this.master);
      for (const topic of session.topics) url.searchParams.append("topic", topic);
      if (this.cursor) url.searchParams.set("cursor", this.cursor);
      const reply = await this.world.fetch(url.href, {
        credentials: "same-origin",
        cache: "no-store",
        headers: { Accept: "text/event-stream" },
        signal: session.abort.signal,
      });
      if (!reply.ok || !reply.body) await this.refusedBy(session, reply);
      else if (await this.read(session, reply.body)) this.broke(session, "the connection ended");
    } catch (error) {
      this.broke(session, error instanceof Error ? error.message : String(error));
    }
  }

  /** Until it ends; whether that leaves something to do. */
  private async read(session: Session, body: ReadableStream<Uint8Array>): Promise<boolean> {
    const parser = new EventParser();
    const decoder = new TextDecoder();
    const reader = body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (session !== this.current && session !== this.next) return false;
      if (done) return true;
      this.listen(session);
      if (session === this.current) this.heardAt = this.world.now();
      if (this.take(session, parser.push(decoder.decode(value, { stream: true })))) return false;
    }
  }

  /** Whether it is over for good. */
  private take(session: Session, events: Sent[]): boolean {
    const changes: Change[] = [];
    for (const sent of events) {
      const data = sent.data ? JSON.parse(sent.data) : {};
      if (sent.event === "hello") this.hello(session, data as Hello);
      else if (sent.event === "change") changes.push(data as Change);
      else if (sent.event === "reset") this.resetBy(session, data.topics as string[]);
      else if (sent.event === "refused") this.withdraw(session, Object.keys(data.topics as object));
      else if (sent.event === "end") {
        this.ended(String(data.reason ?? ""));
        return true;
      }
      if (sent.id !== undefined && session === this.current) this.cursor = sent.id;
    }
    if (changes.length > 0 && session === this.current) this.ears.changes(changes);
    return false;
  }

  private hello(session: Session, hello: Hello): void {
    const former = this.current;
    this.current = session;
    if (this.next === session) this.next = undefined;
    former?.abort.abort();
    this.failures = 0;
    this.heardAt = this.world.now();
    session.followed = new Set(hello.topics);
    const fresh = hello.topics.filter((topic) => !this.known.has(topic));
    session.expected = new Set(this.cursor ? fresh : []);
    this.known = new Set(hello.topics);
    this.say({ state: "live" });
    this.ears.hello(hello, fresh);
    const refused = Object.keys(hello.refused);
    if (refused.length > 0) this.ears.refused(refused);
  }

  private resetBy(session: Session, topics: string[]): void {
    const missed = topics.filter((topic) => !session.expected.delete(topic));
    if (missed.length > 0 && session === this.current) this.ears.reset(missed);
  }

  private withdraw(session: Session, topics: string[]): void {
    for (const topic of topics) {
      this.known.delete(topic);
      session.followed.delete(topic);
    }
    if (session === this.current) this.ears.refused(topics);
  }

  private ended(reason: string): void {
    this.openNever();
    this.close();
    this.cursor = "";
    this.known.clear();
    this.failures = 1;
    this.ears.ended(reason);
  }

  private async refusedBy(session: Session, reply: Response): Promise<void> {
    const reason = await reasonOf(reply);
    if (session !== this.next) return;
    if (sessionEnded(reply.status, reason)) this.ended(reason);
    // A proxy says so while the master is started again.
    else if (reply.status >= 500) this.broke(session, reason);
    else this.broke(session, reason, refusedFor(reply.headers.get("Retry-After"), this.world.random()));
  }

  /** A stream is not there any more, or did not come about. */
  private broke(session: Session, reason: string, waitMs?: number): void {
    if (session === this.current) this.current = undefined;
    else if (session === this.next) this.next = undefined;
    else return;
    session.abort.abort();
    if (this.asked.length === 0) return;
    // The other one goes on, or is about to.
    if (this.next) return;
    this.failures += 1;
    this.openIn(waitMs ?? reconnectIn(this.failures, this.world.random()));
    if (!this.current) {
      this.say({ state: "down", heardAt: this.heardAt, reason, refused: waitMs !== undefined });
    }
  }

  private listen(session: Session): void {
    this.cancelSilence?.();
    this.cancelSilence = this.world.after(SILENT_MS, () => {
      const silent = this.next ?? this.current ?? session;
      this.broke(silent, "it fell silent");
    });
  }

  private say(link: Link): void {
    this.link = link;
    this.ears.link(link);
  }
}

async function reasonOf(reply: Response): Promise<string> {
  try {
    const body = await reply.json();
    const message = body?.error?.error ?? body?.message;
    if (typeof message === "string" && message) return message;
  } catch {
    // No JSON: a proxy in between answered.
  }
  return `the master answered ${reply.status}`;
}
