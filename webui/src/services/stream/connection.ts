/**
 * A tab's way to the stream: through the worker that all tabs of a browser share, so that many tabs are one connection
 * (of which browsers have six for a master); where there is no such worker, by a connection of its own.
 */

import type { ToHub, ToTab } from "./messages";

/** A worker that has not answered by then does not work. */
const ANSWERS_MS = 5000;
/** What a connection of its own needs is fetched again after that, if the master was away. */
const AGAIN_MS = 5000;

export type Send = (message: ToHub) => void;

export function connect(master: URL, receive: (message: ToTab) => void): Send {
  try {
    if (typeof SharedWorker === "function") return shared(master, receive);
  } catch {
    // It is there, and may not be used here.
  }
  return alone(master, receive);
}

/** What it needs comes when it is needed: most browsers have shared workers. */
function alone(master: URL, receive: (message: ToTab) => void): Send {
  let send: Send | undefined;
  const early: ToHub[] = [];
  const load = () => {
    import("./hub").then(
      ({ Hub }) => {
        send = new Hub(master).join(receive);
        for (const message of early) send(message);
      },
      () => setTimeout(load, AGAIN_MS),
    );
  };
  load();
  return (message) => (send ? send(message) : void early.push(message));
}

function shared(master: URL, receive: (message: ToTab) => void): Send {
  const worker = new SharedWorker(new URL("./worker.ts", import.meta.url), { type: "module", name: master.href });
  let send: Send = (message) => worker.port.postMessage(message);
  let newest: ToHub | undefined;
  const replace = () => {
    clearTimeout(timer);
    send({ kind: "leave" });
    worker.port.onmessage = worker.onerror = null;
    send = alone(master, receive);
    if (newest) send(newest);
  };
  const timer = setTimeout(replace, ANSWERS_MS);
  worker.onerror = replace;
  worker.port.onmessage = (event: MessageEvent<ToTab>) => {
    clearTimeout(timer);
    receive(event.data);
  };
  return (message) => {
    if (message.kind === "follow") newest = message;
    send(message);
  };
}
