/**
 * What is made once, however often it is sent: the master knows a request by its key. The same thing sent again keeps
 * its key for as long as nobody knows what became of it; another thing, and what was answered or refused, has a new one.
 */

import { Refused } from "./client";

export class Once {
  private sent = "";
  private key = "";

  /** `content`: all that is sent. */
  async send<T>(content: unknown, send: (headers: { "Idempotency-Key": string }) => Promise<T>): Promise<T> {
    const text = JSON.stringify(content);
    if (text !== this.sent) [this.sent, this.key] = [text, newKey()];
    try {
      const answer = await send({ "Idempotency-Key": this.key });
      this.sent = "";
      return answer;
    } catch (error) {
      // A master or a proxy that breaks may have done it before.
      if (error instanceof Refused && error.status < 500) this.sent = "";
      throw error;
    }
  }
}

/** A name for one request; also where the page is no secure context. */
function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
