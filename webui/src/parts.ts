/**
 * Code of the page that comes once it is needed. While the master is away it is waited for: otherwise a click on a page
 * that was not loaded yet would leave what is shown, and all that is typed there, for an error of the browser.
 */

import { lazy as lazyOnce } from "react";
import { MASTER } from "./services/client";
import { reconnectIn } from "./services/stream/backoff";

const GONE = "The master now has another version of this page, without this part: reload the page.";

/** Raises where the master answers: it has another page now. */
export async function brought<T>(load: () => Promise<T>): Promise<T> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await load();
    } catch (error) {
      // It may have come back since.
      if (await answers()) return load().catch(() => Promise.reject(new Error(GONE, { cause: error })));
      await new Promise((done) => setTimeout(done, reconnectIn(failures, Math.random())));
    }
  }
}

async function answers(): Promise<boolean> {
  try {
    await fetch(new URL("info", MASTER), { cache: "no-store" });
    return true;
  } catch {
    return false;
  }
}

/** As that of React. */
export const lazy: typeof lazyOnce = (load) => lazyOnce(() => brought(load));
