/** The master's own log, as its stream tells it: the lines that it keeps, and those that come. */

import { MASTER, request } from "./client";
import { levelOf, type OutputLine } from "./output";

interface Entry {
  id: number;
  message: string;
  timestamp: string;
  level: string;
}

/** A message may have several lines, as a traceback has. */
export function linesOf({ id, message, timestamp, level }: Entry): OutputLine[] {
  const shared = { number: id, timestamp, leftOut: 0, level: levelOf(level), rank: null, source: "master" };
  return message.split(/\r?\n/).map((text) => ({ ...shared, text }));
}

/** The lines that it keeps, all at once, then those that come, as they come; returns when the master ends it. */
export async function followMaster(
  kept: (lines: OutputLine[]) => void,
  heard: (lines: OutputLine[]) => void,
  signal: AbortSignal,
): Promise<void> {
  const known: Entry[] = [];
  await read("follow=false", (entries) => known.push(...entries), signal);
  kept(known.flatMap(linesOf));
  const next = (known.at(-1)?.id ?? -1) + 1;
  await read(`follow=true&offset=${next}`, (entries) => heard(entries.flatMap(linesOf)), signal);
}

async function read(query: string, each: (entries: Entry[]) => void, signal: AbortSignal): Promise<void> {
  const response = await request(new URL(`api/v1/master/logs?${query}`, MASTER), { signal });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  while (reader) {
    const { done, value } = await reader.read();
    if (done) return;
    const whole = (rest + value).split("\n");
    rest = whole.pop() ?? "";
    each(whole.filter((line) => line !== "").map((line) => JSON.parse(line).result.logEntry as Entry));
  }
}
