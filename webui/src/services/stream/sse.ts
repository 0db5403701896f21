/** Server-sent events out of the parts in which they come. */

export interface Sent {
  event: string;
  data: string;
  /** The position after it; undefined: none was said. */
  id: string | undefined;
}

export class EventParser {
  private rest = "";

  /** The events that a part completes; comments and what is not understood are passed over. */
  push(part: string): Sent[] {
    const blocks = (this.rest + part).replaceAll("\r\n", "\n").split("\n\n");
    this.rest = blocks.pop() ?? "";
    return blocks.map(eventOf).filter((sent) => sent !== undefined);
  }
}

function eventOf(block: string): Sent | undefined {
  const sent: Sent = { event: "", data: "", id: undefined };
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const value = line.slice(colon + 1).replace(/^ /, "");
    const name = line.slice(0, colon);
    if (name === "event") sent.event = value;
    else if (name === "data") sent.data += value;
    else if (name === "id") sent.id = value;
  }
  return sent.event || sent.id !== undefined ? sent : undefined;
}
