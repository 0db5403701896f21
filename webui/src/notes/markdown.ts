/**
 * Markdown as far as notes need it, read into a tree of values. Pure.
 *
 * HTML in it is text like any other: the tree has no place for it. A link leads where `http`, `https` or `mailto` say;
 * whatever else is written as one stays text. A picture is a link to it: the page loads nothing from elsewhere.
 */

export type Inline =
  | { kind: "text" | "code"; text: string }
  | { kind: "strong" | "emphasis" | "struck"; of: Inline[] }
  | { kind: "link"; to: string; of: Inline[] };

export type Block =
  | { kind: "heading"; level: number; of: Inline[] }
  | { kind: "paragraph"; of: Inline[] }
  | { kind: "code"; text: string }
  | { kind: "quote"; of: Block[] }
  | { kind: "list"; ordered: boolean; start: number; items: Block[][] }
  | { kind: "table"; head: Inline[][]; rows: Inline[][][] }
  | { kind: "rule" };

/** Beyond these it is shown as it is written: quotes in quotes, lists in lists, and what stands between signs. */
const MAX_DEPTH = 8;
/** Characters of a paragraph that are looked through for signs. */
const MAX_LOOKED = 20_000;

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(\S.*)|\s*)$/;
const RULE = /^ {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$/;
const ITEM = /^( {0,3})(?:[-*+]|(\d{1,9})[.)])(?:\s+|$)/;
const QUOTE = /^ {0,3}> ?/;
/** Of a line without the spaces at its ends. */
const DIVIDER = /^\|?\s*:?-+:?(?:\s*\|\s*:?-+:?)*(?:\s*\|)?$/;

export function markdown(text: string): Block[] {
  return blocks(text.replaceAll("\r\n", "\n").replaceAll("\t", "    ").split("\n"), 0);
}

function blocks(lines: string[], depth: number): Block[] {
  const made: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    if ((lines[at] ?? "").trim() === "") {
      at++;
      continue;
    }
    const [block, next] = blockAt(lines, at, depth);
    made.push(block);
    at = next;
  }
  return made;
}

/** The block that begins at a line, and the line behind it. */
function blockAt(lines: string[], at: number, depth: number): [Block, number] {
  const line = lines[at] ?? "";
  const fence = FENCE.exec(line)?.[1];
  if (fence) return codeAt(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading)
    return [{ kind: "heading", level: heading[1]?.length ?? 1, of: inlines(opened(heading[2] ?? "")) }, at + 1];
  if (RULE.test(line)) return [{ kind: "rule" }, at + 1];
  if (QUOTE.test(line) && depth < MAX_DEPTH) {
    const end = endOf(lines, at, (each) => QUOTE.test(each));
    const inner = lines.slice(at, end).map((each) => each.replace(QUOTE, ""));
    return [{ kind: "quote", of: blocks(inner, depth + 1) }, end];
  }
  if (ITEM.test(line) && depth < MAX_DEPTH) return listAt(lines, at, depth);
  if (line.includes("|") && DIVIDER.test((lines[at + 1] ?? "").trim())) return tableAt(lines, at);
  const end = Math.max(
    at + 1,
    endOf(lines, at, (each, place) => place === at || (each.trim() !== "" && !begins(each))),
  );
  return [{ kind: "paragraph", of: inlines(lines.slice(at, end).join("\n")) }, end];
}

/** The text of a heading without the signs that close it. */
function opened(text: string): string {
  const trimmed = text.trimEnd();
  let end = trimmed.length;
  while (trimmed[end - 1] === "#") end--;
  return end === 0 || /\s/.test(trimmed[end - 1] ?? "") ? trimmed.slice(0, end).trimEnd() : trimmed;
}

/** Whether a line ends a paragraph. */
function begins(line: string): boolean {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);
}

function endOf(lines: string[], at: number, goesOn: (line: string, place: number) => boolean): number {
  let end = at;
  while (end < lines.length && goesOn(lines[end] ?? "", end)) end++;
  return end;
}

function codeAt(lines: string[], at: number, fence: string): [Block, number] {
  const closes = (line: string) => line.trim().startsWith(fence) && line.trim().replaceAll(fence[0] ?? "", "") === "";
  const end = endOf(lines, at + 1, (line) => !closes(line));
  return [{ kind: "code", text: lines.slice(at + 1, end).join("\n") }, end + 1];
}

function listAt(lines: string[], at: number, depth: number): [Block, number] {
  const first = ITEM.exec(lines[at] ?? "");
  const ordered = first?.[2] !== undefined;
  const items: Block[][] = [];
  let next = at;
  while (next < lines.length) {
    const line = lines[next] ?? "";
    const item = ITEM.exec(line);
    if (!item || (item[2] !== undefined) !== ordered || RULE.test(line)) break;
    const indent = item[0].trimEnd().length + 1;
    const own = (each: string) => each.trim() === "" || each.length - each.trimStart().length >= Math.min(indent, 2);
    const end = endOf(
      lines,
      next + 1,
      (each, place) => own(each) || (!begins(each) && lines[place - 1]?.trim() !== ""),
    );
    const inner = [line.slice(item[0].length), ...lines.slice(next + 1, end).map((each) => cut(each, indent))];
    items.push(blocks(inner, depth + 1));
    next = end;
  }
  return [{ kind: "list", ordered, start: Number(first?.[2] ?? 1), items }, next];
}

/** Without so many spaces before it, as far as there are. */
function cut(line: string, indent: number): string {
  return line.slice(Math.min(indent, line.length - line.trimStart().length));
}

function tableAt(lines: string[], at: number): [Block, number] {
  const end = endOf(lines, at + 2, (line) => line.includes("|"));
  const [head = [], ...rows] = [lines[at] ?? "", ...lines.slice(at + 2, end)].map(cells);
  // As many cells as were written: rows that are filled up would be the square of what was.
  return [{ kind: "table", head, rows: rows.map((row) => row.slice(0, head.length)) }, end];
}

function cells(line: string): Inline[][] {
  const inner = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => inlines(cell.trim().replaceAll("\\|", "|")));
}

const MARKS = [
  ["**", "strong"],
  ["__", "strong"],
  ["~~", "struck"],
  ["*", "emphasis"],
  ["_", "emphasis"],
] as const;
const ADDRESS = /^https?:\/\/[^\s<>"'`)\]]*[^\s<>"'`)\].,;:!?]/;
const SAFE = /^(?:https?:\/\/|mailto:)[^\s<>"]+$/i;
const LINK = /^!?\[([^[\]]*)\]\( {0,9}([^()\s]+)(?:\s{1,9}"[^"]*")?\s{0,9}\)/;

export function inlines(text: string, depth = 0): Inline[] {
  if (text.length > MAX_LOOKED || depth > MAX_DEPTH) return text === "" ? [] : [{ kind: "text", text }];
  const made: Inline[] = [];
  /** Signs that have no second one further on: they are not looked for again. */
  const alone = new Set<string>();
  let plain = "";
  const put = (part: Inline) => {
    if (plain) made.push({ kind: "text", text: plain });
    plain = "";
    made.push(part);
  };
  for (let at = 0; at < text.length; ) {
    const [part, length] = inlineAt(text, at, depth, alone);
    if (part === undefined) plain += text.slice(at, at + length).replace(/^\\(?=[!-/:-@[-`{-~])/, "");
    else put(part);
    at += length;
  }
  if (plain) made.push({ kind: "text", text: plain });
  return made;
}

const SIGNS = new Set("\\`!*_~[h");

/** What begins at a place, and how many characters it takes; undefined: text. */
function inlineAt(text: string, at: number, depth: number, alone: Set<string>): [Inline | undefined, number] {
  const sign = text[at] ?? "";
  if (!SIGNS.has(sign)) return [undefined, 1];
  if (sign === "\\") return [undefined, Math.min(2, text.length - at)];
  if (sign === "`") return codeIn(text, at, alone);
  if (sign === "[" || sign === "!") return linkIn(text, at, depth);
  if (sign === "h") {
    const address = ADDRESS.exec(text.slice(at, at + 2000))?.[0];
    return address
      ? [{ kind: "link", to: address, of: [{ kind: "text", text: address }] }, address.length]
      : [undefined, 1];
  }
  for (const [mark, kind] of MARKS) {
    if (!text.startsWith(mark, at) || alone.has(mark)) continue;
    const begin = at + mark.length;
    // Within a word an underscore is a letter; a sign before a space begins nothing.
    if (/\s/.test(text[begin] ?? " ") || (mark[0] === "_" && /\w/.test(text[at - 1] ?? ""))) continue;
    const end = text.indexOf(mark, begin + 1);
    if (end < 0) {
      alone.add(mark);
      continue;
    }
    if (/\s/.test(text[end - 1] ?? "") || (mark[0] === "_" && /\w/.test(text[end + mark.length] ?? ""))) continue;
    return [{ kind, of: inlines(text.slice(begin, end), depth + 1) }, end + mark.length - at];
  }
  return [undefined, 1];
}

function codeIn(text: string, at: number, alone: Set<string>): [Inline | undefined, number] {
  const ticks = /^`+/.exec(text.slice(at))?.[0] ?? "`";
  const end = alone.has(ticks) ? -1 : text.indexOf(ticks, at + ticks.length);
  if (end < 0) {
    alone.add(ticks);
    return [undefined, ticks.length];
  }
  const inner = text.slice(at + ticks.length, end);
  return [{ kind: "code", text: inner.replace(/^ (.+) $/s, "$1") }, end + ticks.length - at];
}

function linkIn(text: string, at: number, depth: number): [Inline | undefined, number] {
  const [whole, name = "", to = ""] = LINK.exec(text.slice(at, at + 4000)) ?? [];
  if (whole === undefined || !SAFE.test(to)) return [undefined, 1];
  return [{ kind: "link", to, of: name ? inlines(name, depth + 1) : [{ kind: "text", text: to }] }, whole.length];
}
