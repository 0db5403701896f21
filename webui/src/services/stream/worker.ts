/** The one connection of a browser: a worker that all tabs share. Its name is the master's address. */

import { Hub } from "./hub";
import type { ToHub } from "./messages";

const scope = globalThis as unknown as { name: string; onconnect: (event: MessageEvent) => void };
const hub = new Hub(new URL(scope.name));

scope.onconnect = ({ ports }) => {
  for (const port of ports) {
    const receive = hub.join((message) => port.postMessage(message));
    port.onmessage = (event: MessageEvent<ToHub>) => receive(event.data);
  }
};
