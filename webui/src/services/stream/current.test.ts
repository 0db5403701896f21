import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { beforeEach, describe, expect, it } from "vitest";
import { Current } from "./current";
import type { ToTab } from "./messages";

const KEY = ["thing", 1];
const DELETED: ToTab = { kind: "changes", changes: [{ kind: "thing", id: 1, deleted: true }] };

/** All that is ready to run has run. */
const settled = () => new Promise((done) => setTimeout(done, 0));

let client: QueryClient;
let current: Current;
let receive: (message: ToTab) => void;
let asked: AbortSignal[];
let leave: () => void;
/** Answers whatever is asked for, from now on at once. */
let answer: () => void;

/** One thing is shown, and followed. */
beforeEach(async () => {
  client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const nothing = () => {};
  current = new Current(client, { link: nothing, ended: nothing, contract: nothing, current: nothing });
  current.start((heard) => {
    receive = heard;
    return nothing;
  });
  asked = [];
  answer = nothing;
  const told = () => ({ refetch: true });
  const observer = new QueryObserver(client, {
    queryKey: KEY,
    queryFn: ({ signal }) =>
      current.fetched(KEY, signal, () => {
        asked.push(signal);
        return new Promise<number>((done) => {
          answer = () => done(asked.length);
        });
      }),
    staleTime: Number.POSITIVE_INFINITY,
    // As often as it is told to.
    meta: { live: { subject: { topics: ["things"], news: told, everyMs: 0 } } },
  });
  receive({ kind: "link", link: { state: "live" } });
  receive({ kind: "followed", topics: ["things"] });
  leave = observer.subscribe(nothing);
  await settled();
  answer();
  await settled();
  expect(client.getQueryData(KEY)).toBe(1);
});

describe("what is deleted here", () => {
  it("is asked for once more where somebody else has deleted it", async () => {
    receive(DELETED);
    await expect.poll(() => asked.length).toBe(2);
  });

  it("is not asked for when the stream tells of it, and forgotten once it was left", async () => {
    await current.remove([["thing"]], async () => {
      receive(DELETED);
      await settled();
    });
    receive(DELETED);
    await client.invalidateQueries({ queryKey: KEY });
    await settled();
    expect(asked.length).toBe(1);
    expect(client.getQueryData(KEY)).toBe(1);
    leave();
    expect(client.getQueryCache().getAll()).toEqual([]);
  });

  it("is forgotten at once where it is not shown", async () => {
    leave();
    await current.remove([KEY], async () => {});
    expect(client.getQueryCache().getAll()).toEqual([]);
  });

  it("is not waited for where the answer is on its way", async () => {
    receive(DELETED);
    await expect.poll(() => asked.length).toBe(2);
    await current.remove([KEY], async () => expect(asked[1]?.aborted).toBe(true));
    expect(client.getQueryData(KEY)).toBe(1);
  });

  it("is asked for anew where that was refused", async () => {
    const refused = current.remove([KEY], async () => {
      receive(DELETED);
      await settled();
      throw new Error("not yours");
    });
    await expect(refused).rejects.toThrow("not yours");
    await expect.poll(() => asked.length).toBe(2);
  });
});
