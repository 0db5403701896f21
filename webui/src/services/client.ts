/** How the page speaks to the master: one client, one kind of error, and what happens when a session has ended. */

import createClient, { type Middleware } from "openapi-fetch";
import { sessionEnded } from "./ended";
import type { paths } from "./schema";

/** The master's own address: the page lies below it in `ui/`. */
export const MASTER = new URL("../", document.baseURI);

/** A refusal of the master, in its own words. */
export class Refused extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

/** The master could not be reached, or nobody knows what it answered. */
export class Unreachable extends Error {
  constructor(message = "The master does not answer. Is it running? On its machine: tenax up") {
    super(message);
  }
}

type Listener = () => void;
let onEnded: Listener = () => {};

/** Says what to do when the master does not know this session (any more). */
export function whenSessionEnds(listener: Listener): void {
  onEnded = listener;
}

/** A request of any kind. Raises Refused, Unreachable. */
export async function request(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(input, { credentials: "same-origin", ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Unreachable();
  }
  if (response.ok) return response;
  const message = await refusal(response);
  if (sessionEnded(response.status, message) && !response.url.endsWith("/auth/login")) onEnded();
  throw new Refused(message, response.status);
}

async function refusal(response: Response): Promise<string> {
  try {
    const body = await response.json();
    const message = body?.error?.error ?? body?.message;
    if (typeof message === "string" && message) return message;
  } catch {
    // No JSON: a proxy in between answered.
  }
  return `The master answered ${response.status} ${response.statusText}`.trim();
}

const throwing: Middleware = {
  async onResponse({ response }) {
    if (response.ok) return undefined;
    const message = await refusal(response.clone());
    if (sessionEnded(response.status, message) && !response.url.endsWith("/auth/login")) onEnded();
    throw new Refused(message, response.status);
  },
  onError({ error }) {
    if (error instanceof DOMException && error.name === "AbortError") return undefined;
    if (error instanceof Refused) return error;
    return new Unreachable();
  },
};

export const api = createClient<paths>({ baseUrl: MASTER.href.replace(/\/$/, ""), credentials: "same-origin" });
api.use(throwing);

/** What was answered; openapi-fetch says `undefined` where the middleware has thrown already. */
export async function answered<T>(reply: Promise<{ data?: T }>): Promise<T> {
  const { data } = await reply.catch((error) => {
    const isKnown = error instanceof Refused || error instanceof Unreachable;
    if (isKnown || (error instanceof DOMException && error.name === "AbortError")) throw error;
    throw new Unreachable("The master's answer was cut off. Try again");
  });
  if (data === undefined) throw new Refused("The master answered nothing", 0);
  return data;
}
