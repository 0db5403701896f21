/**
 * A line of output as pieces of text: colours by our own tokens, what stands before the last return dropped as a
 * terminal writes over it. All other control characters are shown as signs: nothing that a line holds is hidden.
 */

import { visible } from "../visible";

export interface Piece {
  text: string;
  className: string;
}

const COLOURS = ["text-text", "text-bad", "text-ok", "text-wait", "text-run", "text-accent", "text-run", "text-text"];

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const SGR = /\u001b\[([0-9;:]*)m/g;

interface Look {
  colour: string;
  bold: boolean;
  faint: boolean;
  underline: boolean;
}

const PLAIN: Look = { colour: "", bold: false, faint: false, underline: false };

export function pieces(line: string): Piece[] {
  const state = overwritten(line);
  const made: Piece[] = [];
  let look = PLAIN;
  let at = 0;
  for (const match of state.matchAll(SGR)) {
    add(made, state.slice(at, match.index), look);
    look = changed(look, match[1] ?? "");
    at = match.index + match[0].length;
  }
  add(made, state.slice(at), look);
  return made;
}

/** The text alone, as it is shown. */
export function plain(line: string): string {
  return visible(overwritten(line).replace(SGR, ""));
}

/** What the last return that was followed by something has left; colours that were set before it hold. */
function overwritten(line: string): string {
  const body = line.replace(/[\r\n]+$/, "");
  const place = body.lastIndexOf("\r");
  if (place < 0) return body;
  const before = [...body.slice(0, place).matchAll(SGR)].map((match) => match[0]).join("");
  return before + body.slice(place + 1);
}

function add(made: Piece[], text: string, look: Look): void {
  if (text === "") return;
  const classes = [look.colour, look.bold && "font-semibold", look.faint && "text-dim", look.underline && "underline"];
  made.push({ text: visible(text), className: classes.filter(Boolean).join(" ") });
}

function changed(look: Look, codes: string): Look {
  let now = look;
  const numbers = codes.split(/[;:]/).map(Number);
  for (let at = 0; at < numbers.length; at++) {
    const code = numbers[at] ?? 0;
    if (code === 0) now = PLAIN;
    else if (code === 1) now = { ...now, bold: true };
    else if (code === 2) now = { ...now, faint: true };
    else if (code === 4) now = { ...now, underline: true };
    else if (code === 22) now = { ...now, bold: false, faint: false };
    else if (code === 24) now = { ...now, underline: false };
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) {
      now = { ...now, colour: COLOURS[code % 10] ?? "", faint: code === 90 };
    } else if (code === 39) now = { ...now, colour: "" };
    // A colour of a larger palette, and of the ground: its numbers are no colours of ours.
    else if (code === 38 || code === 48) at += numbers[at + 1] === 5 ? 2 : 4;
  }
  return now;
}
