/** How long is waited before the next attempt. Pure. */

const FIRST_MS = 500;
/** As long as it takes a master to be started again, and later on. */
const MAX_MS = 3000;
const MAX_LATER_MS = 15_000;
const SOON = 20;
/** Where the master has answered, and said no. */
const REFUSED_MS = 30_000;
const FIRST_POLL_MS = 10_000;
const MAX_POLL_MS = 60_000;

/** After so many failures in a row (1 or more): doubled each time, spread so that tabs do not come all at once. */
export function reconnectIn(failures: number, random: number): number {
  const most = Math.min(failures > SOON ? MAX_LATER_MS : MAX_MS, FIRST_MS * 2 ** Math.min(20, failures - 1));
  return most * (0.5 + random / 2);
}

/** After a refusal: `retryAfter` seconds if the master said so. */
export function refusedFor(retryAfter: string | null, random: number): number {
  const seconds = Number(retryAfter ?? "");
  const least = Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds * 1000, 300_000) : REFUSED_MS;
  return least * (1 + random / 2);
}

/** Without a stream what is in view is asked for again, ever more rarely; `times` it was done already. */
export function pollIn(times: number): number {
  return Math.min(MAX_POLL_MS, FIRST_POLL_MS * 2 ** Math.min(10, times));
}
