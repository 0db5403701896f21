/**
 * Keeps what is in view current: topics of the queries that are shown are followed, and what comes is written into them.
 *
 * Rules it keeps:
 *
 * - a query is current once its topics are followed and it was fetched, or asked for, after that;
 * - what comes while a fetch is under way holds for its answer as well: an answer never takes a page back;
 * - a query is fetched again only where the changes say so, once a second at most, and never while the tab is hidden;
 * - what is deleted here is not asked for again, though the stream tells of it before the page has left what it showed;
 * - while the stream is not there, what is in view and can still change is asked for ever more rarely.
 */

import { hashKey, type Query, type QueryClient, type QueryKey } from "@tanstack/react-query";
import { Unreachable } from "../client";
import { pollIn } from "./backoff";
import type { Send } from "./connection";
import { type Change, type Link, MAX_TOPICS, PING_MS, type ToTab } from "./messages";
import { applied, type Subject, topicsOf } from "./subject";

/** A query is fetched again no more often than that, unless it says otherwise. */
const EVERY_MS = 1000;
/** So long a first fetch waits for its topics to be followed: what is fetched before has to be fetched twice. */
const HOLD_MS = 150;
/** What is not followed is taken for current for so long. */
const HOLDS_MS = 2000;
/** What is not shown any more is followed so much longer: people go back. */
const LINGER_MS = 30_000;
/** The stream may be away for so long before anything is asked for without it. */
const GRACE_MS = 5000;

/** As it stands in `meta` of a query. */
export interface Live {
  subject: Subject<unknown>;
  /** Whether data can change no more: these are not polled. */
  settled?: (data: unknown) => boolean;
}

interface Fetch {
  /** It has left, and changes came meanwhile. */
  changes: Change[];
}

interface Waiting {
  topics: readonly string[];
  release: () => void;
}

export class Current {
  private readonly followed = new Set<string>();
  /** Topic -> when it was needed last. */
  private readonly needed = new Map<string, number>();
  private readonly fetches = new Map<string, Fetch>();
  /** Queries of which something is missing. */
  private readonly dirty = new Set<string>();
  private readonly fetchedAt = new Map<string, { at: number; took: number }>();
  private readonly timers = new Map<string, ReturnType<typeof setTimeout>>();
  private readonly waiting = new Set<Waiting>();
  /** Queries of what is deleted here, for as long as they are shown -> whether it is gone already. */
  private readonly going = new Map<string, boolean>();
  /** Queries that are about to be shown. */
  private readonly expected = new Set<string>();
  private send: Send = () => {};
  private said = "";
  private link: Link = { state: "idle" };
  private polls = 0;
  private pollTimer: ReturnType<typeof setTimeout> | undefined;
  private gathering: ReturnType<typeof setTimeout> | undefined;
  private lingering: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly client: QueryClient,
    private readonly ears: {
      link(link: Link): void;
      ended(): void;
      contract(schema: string): void;
      /** Whether all that is shown is as the master has it. */
      current(is: boolean): void;
    },
  ) {}

  /** Begin, by this connection. */
  start(connect: (receive: (message: ToTab) => void) => Send): void {
    this.send = connect((message) => this.receive(message));
    this.client.getQueryCache().subscribe((event) => {
      if (!liveOf(event.query)) return;
      if (event.type === "removed") this.forget(event.query.queryHash);
      else if (event.type === "observerRemoved") this.leave(event.query);
      else if (event.type === "observerAdded") {
        this.expected.delete(event.query.queryHash);
        this.pump(event.query);
      } else if (event.type === "updated" && (event.action.type === "success" || event.action.type === "error")) {
        this.pump(event.query);
      }
      // Topics may hang on what was fetched, so they are looked at after each answer.
      if (event.type !== "observerResultsUpdated") this.gather();
    });
    document.addEventListener("visibilitychange", () => this.look(document.visibilityState === "visible"));
    window.addEventListener("pagehide", () => this.send({ kind: "leave" }));
    window.addEventListener("pageshow", (event) => event.persisted && this.look(true));
    window.addEventListener("online", () => this.send({ kind: "nudge" }));
    setInterval(() => visible() && this.said && this.sayTopics(true), PING_MS);
  }

  /** A query is about to be shown: what it is about is followed from now on, as if it was already. */
  expect(hash: string): void {
    this.expected.add(hash);
    setTimeout(() => this.expected.delete(hash) && this.gather(), LINGER_MS);
  }

  /** Fetch what a query is of, so that nothing that changes meanwhile is lost. */
  async fetched<T>(key: QueryKey, signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
    const hash = hashKey(key);
    const query = this.client.getQueryCache().get(hash);
    const live = query && liveOf(query);
    if (!query || !live) return ask();
    if (this.going.has(hash) && query.state.data !== undefined) {
      this.dirty.delete(hash);
      return query.state.data as T;
    }
    await this.hold(query, live, signal);
    const fetch: Fetch = { changes: [] };
    const at = Date.now();
    this.fetches.set(hash, fetch);
    this.fetchedAt.set(hash, { at, took: 0 });
    this.dirty.delete(hash);
    try {
      const answer = await ask();
      this.fetchedAt.set(hash, { at, took: Date.now() - at });
      const { data, refetch } = applied(live.subject, fetch.changes, answer);
      if (refetch) this.dirty.add(hash);
      return data as T;
    } catch (error) {
      // It is as old as before.
      if (this.fetches.get(hash) === fetch && query.state.data !== undefined) this.dirty.add(hash);
      throw error;
    } finally {
      if (this.fetches.get(hash) === fetch) this.fetches.delete(hash);
    }
  }

  /** Delete what queries are of, by the beginnings of their keys. Raises whatever it was refused with. */
  async remove<T>(keys: readonly QueryKey[], ask: () => Promise<T>): Promise<T> {
    const queries = keys.flatMap((queryKey) => this.queries(queryKey));
    for (const query of queries) this.going.set(query.queryHash, false);
    // An answer that is on its way may come to say that it is gone.
    await Promise.all(queries.map((query) => query.cancel({ revert: true })));
    try {
      const answer = await ask();
      for (const query of queries) {
        this.going.set(query.queryHash, true);
        this.leave(query);
      }
      return answer;
    } catch (error) {
      for (const query of queries) {
        this.going.delete(query.queryHash);
        this.doubtOne(query);
      }
      throw error;
    }
  }

  /** Of what is gone nothing is kept, once it is not shown. */
  private leave(query: Query): void {
    if (this.going.get(query.queryHash) && !query.isActive()) this.client.getQueryCache().remove(query);
  }

  /** For how long what was fetched holds: for good where all that changes is told. */
  holds(query: Query): number {
    if (this.dirty.has(query.queryHash)) return 0;
    return this.follows(query) ? Number.POSITIVE_INFINITY : HOLDS_MS;
  }

  private isShown(query: Query): boolean {
    return query.isActive() || this.expected.has(query.queryHash);
  }

  private isCurrent(query: Query): boolean {
    return this.follows(query) && query.state.fetchStatus === "idle" && !this.dirty.has(query.queryHash);
  }

  private follows(query: Query): boolean {
    const live = liveOf(query);
    if (!live || this.link.state !== "live") return false;
    return topicsOf(live.subject, query.state.data).every((topic) => this.followed.has(topic));
  }

  private receive(message: ToTab): void {
    this.gather();
    if (message.kind === "link") this.stands(message.link);
    else if (message.kind === "followed") this.begin(message.topics);
    else if (message.kind === "changes") this.change(message.changes);
    else if (message.kind === "reset") this.doubt(message.topics);
    else if (message.kind === "refused") {
      for (const topic of message.topics) this.followed.delete(topic);
      this.release();
      this.watchPolls();
    } else if (message.kind === "contract") this.ears.contract(message.schema);
    else if (visible()) this.ears.ended();
  }

  private stands(link: Link): void {
    const was = this.link.state;
    this.link = link;
    this.ears.link(link);
    if (link.state === "down") this.release();
    if (link.state === "live" && was === "down") this.retryAll();
    this.watchPolls();
  }

  /** What failed while the master was away is shown as a problem: it is asked for again, also what nothing is told of. */
  private retryAll(): void {
    for (const query of this.client.getQueryCache().findAll({ type: "active" })) {
      if (!liveOf(query) && query.state.error instanceof Unreachable) refetch(query);
    }
    for (const query of this.queries())
      if (query.state.status === "error" || this.dirty.has(query.queryHash)) this.doubtOne(query);
  }

  private begin(topics: string[]): void {
    for (const topic of topics) this.followed.add(topic);
    // Whatever has left before may have missed something; who waits has not left.
    this.doubt(topics);
    this.release();
    this.watchPolls();
  }

  private change(changes: Change[]): void {
    for (const query of this.queries()) {
      const { subject } = liveOf(query) as Live;
      this.fetches.get(query.queryHash)?.changes.push(...changes);
      const before = query.state.data;
      if (before === undefined) continue;
      const { data, refetch } = applied(subject, changes, before);
      if (data !== before && query.isActive())
        query.setData(data, { updatedAt: query.state.dataUpdatedAt, manual: true });
      if (refetch || (data !== before && !query.isActive())) this.doubtOne(query);
    }
  }

  private doubt(topics: string[]): void {
    for (const query of this.queries()) {
      const has = query.state.data !== undefined || this.fetches.has(query.queryHash);
      const live = liveOf(query) as Live;
      if (has && topicsOf(live.subject, query.state.data).some((topic) => topics.includes(topic))) {
        this.doubtOne(query);
      }
    }
  }

  private doubtOne(query: Query): void {
    this.dirty.add(query.queryHash);
    this.pump(query);
  }

  /** Fetch again what is in view and not current, when it is its turn. */
  private pump(query: Query): void {
    const hash = query.queryHash;
    const ready = this.dirty.has(hash) && query.isActive() && query.state.fetchStatus === "idle";
    if (!ready || !visible() || this.timers.has(hash) || this.link.state === "down") return;
    const last = this.fetchedAt.get(hash);
    const every = (liveOf(query) as Live).subject.everyMs ?? EVERY_MS;
    const wait = last ? last.at + Math.max(every, 5 * last.took) - Date.now() : 0;
    const run = () => {
      this.timers.delete(hash);
      if (this.dirty.has(hash) && query.isActive() && query.state.fetchStatus === "idle" && visible()) refetch(query);
    };
    this.timers.set(hash, setTimeout(run, Math.max(0, wait)));
  }

  /** Follow what is shown, soon: many queries come and go together. */
  private gather(): void {
    this.gathering ??= setTimeout(() => {
      this.gathering = undefined;
      this.sayTopics();
      const shown = this.queries().filter((query) => query.isActive());
      this.ears.current(shown.length > 0 && shown.every((query) => this.isCurrent(query)));
    }, 0);
  }

  private sayTopics(again = false): void {
    const now = Date.now();
    const shown = new Set<string>();
    for (const query of this.queries()) {
      const { subject } = liveOf(query) as Live;
      if (this.isShown(query)) for (const topic of topicsOf(subject, query.state.data)) shown.add(topic);
    }
    for (const topic of shown) this.needed.set(topic, now);
    // Where nothing is shown nobody goes back: this is the login.
    const goes = visible() && shown.size > 0;
    const over = [...this.needed].filter(([topic, at]) => !shown.has(topic) && (now - at >= LINGER_MS || !goes));
    const room = MAX_TOPICS / 2;
    const late = [...this.needed.keys()]
      .filter((topic) => !shown.has(topic))
      .slice(0, Math.max(0, this.needed.size - room));
    this.drop([...over.map(([topic]) => topic), ...late]);
    clearTimeout(this.lingering);
    if (visible() && this.needed.size > shown.size) this.lingering = setTimeout(() => this.sayTopics(), LINGER_MS);
    const topics = visible() ? [...shown, ...[...this.needed.keys()].filter((topic) => !shown.has(topic))] : [];
    const said = topics.join("\n");
    if (again || said !== this.said) this.send({ kind: "follow", topics });
    this.said = said;
    this.watchPolls();
  }

  private drop(topics: string[]): void {
    if (topics.length === 0) return;
    this.doubt(topics.filter((topic) => this.followed.has(topic)));
    for (const topic of topics) {
      this.needed.delete(topic);
      this.followed.delete(topic);
    }
  }

  /** The tab is shown, or hidden. */
  private look(shown: boolean): void {
    this.polls = 0;
    if (shown) this.send({ kind: "nudge" });
    else {
      // What is followed again later is fetched again then.
      this.followed.clear();
      for (const timer of this.timers.values()) clearTimeout(timer);
      this.timers.clear();
    }
    this.sayTopics(true);
  }

  /** A first fetch waits until its topics are followed, for a moment: then it need not be made twice. */
  private async hold(query: Query, live: Live, signal: AbortSignal): Promise<void> {
    const topics = topicsOf(live.subject, query.state.data);
    const isAsked = query.getObserversCount() > 0 || this.expected.has(query.queryHash);
    if (!isAsked || this.link.state === "down" || this.follows(query) || !visible()) return;
    await new Promise<void>((release) => {
      const waiting: Waiting = { topics, release };
      this.waiting.add(waiting);
      const over = () => {
        this.waiting.delete(waiting);
        release();
      };
      setTimeout(over, HOLD_MS);
      signal.addEventListener("abort", over);
    });
  }

  private release(): void {
    for (const waiting of this.waiting) {
      if (this.link.state !== "down" && !waiting.topics.every((topic) => this.followed.has(topic))) continue;
      this.waiting.delete(waiting);
      waiting.release();
    }
  }

  /** Without a stream, or of what it may not say, something has to be asked for. */
  private watchPolls(): void {
    const missing = visible() && this.unfollowed().length > 0;
    if (!missing) {
      this.polls = 0;
      clearTimeout(this.pollTimer);
      this.pollTimer = undefined;
    } else this.pollTimer ??= setTimeout(() => this.poll(), GRACE_MS);
  }

  private unfollowed(): Query[] {
    return this.queries().filter((query) => query.isActive() && !this.follows(query) && !isSettled(query));
  }

  private poll(): void {
    this.pollTimer = undefined;
    const queries = visible() ? this.unfollowed() : [];
    if (queries.length === 0) return;
    for (const query of queries) if (query.state.fetchStatus === "idle") refetch(query);
    this.pollTimer = setTimeout(() => this.poll(), pollIn(this.polls++));
  }

  private queries(queryKey: QueryKey = []): Query[] {
    return this.client.getQueryCache().findAll({ queryKey, predicate: (query) => liveOf(query) !== undefined });
  }

  private forget(hash: string): void {
    this.expected.delete(hash);
    this.going.delete(hash);
    this.dirty.delete(hash);
    this.fetchedAt.delete(hash);
    clearTimeout(this.timers.get(hash));
    this.timers.delete(hash);
  }
}

function liveOf(query: Query): Live | undefined {
  return query.meta?.live as Live | undefined;
}

function isSettled(query: Query): boolean {
  const { settled } = liveOf(query) as Live;
  return query.state.data !== undefined && (settled?.(query.state.data) ?? false);
}

function visible(): boolean {
  return document.visibilityState === "visible";
}

function refetch(query: Query): void {
  // What goes wrong stands in the query.
  query.fetch().catch(() => {});
}
