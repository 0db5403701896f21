/**
 * A filter as a tree that is built by hand, and as the text that people type: the master reads that text into such a tree,
 * here it is only written. Pure.
 */

/** `operator`: one of the language, or `has` for whatever has a value there. Without a column it is text by itself. */
export interface Condition {
  column?: string;
  operator: string;
  values: string[];
  /** Its value stands in quotes, as `"me"` who is called so. */
  quoted?: boolean;
  not?: boolean;
}

export interface ConditionGroup {
  /** One of the parts holds; else all of them do. */
  any: boolean;
  parts: Part[];
  not?: boolean;
}

export type Part = Condition | ConditionGroup;

export function isGroup(part: Part): part is ConditionGroup {
  return "parts" in part;
}

const PLAIN = /^(?:[^\s"()<>=!:]|!(?!=))+$/;
const KEYWORDS = new Set(["AND", "OR", "NOT"]);

/** In quotes where it would be read otherwise. */
export function quoted(text: string, always = false): string {
  if (!always && PLAIN.test(text) && !text.includes(",") && !KEYWORDS.has(text)) return text;
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

/** Whether there is enough of it to be written. */
function isWhole(part: Part): boolean {
  if (isGroup(part)) return part.parts.some(isWhole);
  if (part.operator === "has") return !!part.column;
  return part.values.some((value) => value !== "");
}

/** As it is typed; what is not whole yet is left out. */
export function writtenFilter(part: Part, isInner = false): string {
  const not = part.not ? "NOT " : "";
  if (isGroup(part)) {
    const parts = part.parts.filter(isWhole).map((each) => writtenFilter(each, true));
    const text = parts.join(part.any ? " OR " : " ");
    // Parts beside one another bind stronger than OR, and NOT stronger than both.
    return parts.length > 0 && (isInner || part.not) ? `${not}(${text})` : text;
  }
  if (part.operator === "has") return `${not}has:${quoted(part.column ?? "")}`;
  const values = part.values
    .filter((value) => value !== "")
    .map((value) => quoted(value, part.quoted))
    .join(",");
  return `${not}${part.column === undefined ? "" : quoted(part.column) + part.operator}${values}`;
}

/** What the master read, as it is built by hand; at the top always a group. */
export function treeOf(read: unknown): ConditionGroup {
  const part = partOf(read);
  if (!part) return { any: false, parts: [] };
  // `(a OR b)` alone is read as a group of one group.
  if (isGroup(part) && part.parts.length === 1 && !part.not) {
    const [only] = part.parts;
    if (only && isGroup(only)) return only;
  }
  return isGroup(part) ? part : { any: false, parts: [part] };
}

function partOf(read: unknown): Part | undefined {
  if (!read || typeof read !== "object") return undefined;
  const node = read as Record<string, unknown>;
  if ("not" in node) {
    const inner = partOf(node.not);
    return inner && { ...inner, not: !inner.not };
  }
  if (Array.isArray(node.parts))
    return { any: node.any === true, parts: node.parts.flatMap((each) => partOf(each) ?? []) };
  const values = Array.isArray(node.values) ? node.values.map(String) : [];
  const shared = { values, ...(node.quoted === true && { quoted: true }) };
  if (typeof node.column !== "string") return { operator: ":", ...shared };
  if (node.column === "has" && node.operator === ":" && values.length === 1) {
    return { column: values[0], operator: "has", values: [] };
  }
  return { column: node.column, operator: String(node.operator), ...shared };
}
