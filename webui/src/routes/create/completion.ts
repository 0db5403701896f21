/** What may stand at a place of a configuration, by the schema of the master. Pure. */

/** JSON Schema, as far as the master's has it. */
export interface Schema {
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  description?: string;
  deprecated?: boolean;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  items?: Schema;
  anyOf?: Schema[];
  minimum?: number;
  maximum?: number;
}

export interface Completion {
  /** What is written instead of what stands between `from` and the cursor. */
  text: string;
  /** Its kind, or its default. */
  detail: string;
  /** What it means. */
  info: string;
}

export interface Completions {
  from: number;
  options: Completion[];
}

interface Line {
  /** Where its key begins, behind the dashes of a list. */
  indent: number;
  /** Where its first dash stands; undefined: it begins no item of a list. */
  dash?: number;
  /** Undefined: no key of a map. */
  key?: string;
  value: string;
}

const KEY = /^(\s*)((?:- +)*)([\w.-]+):(?:\s+(.*))?$/;

function lineOf(text = ""): Line {
  const [, spaces = "", dashes = "", key, value = ""] = KEY.exec(text) ?? [];
  const begin = text.search(/\S/);
  const isItem = /^\s*-(\s|$)/.test(text);
  return {
    indent: key === undefined ? (begin < 0 ? text.length : begin) : spaces.length + dashes.length,
    ...(isItem ? { dash: begin } : {}),
    ...(key === undefined ? {} : { key }),
    value: value.replace(/\s+#.*$/, ""),
  };
}

/** One step from the whole to a place: a key, with what stands beside it; an item of a list is the key "-". */
interface Step {
  key: string;
  beside: Map<string, string>;
}

const ITEM: Step = { key: "-", beside: new Map() };

/** The steps to a line that lies below all keys which begin before `below`. */
function pathTo(lines: string[], at: number, below: number): Step[] {
  const path: Step[] = [];
  let least = below;
  for (let place = at - 1; place >= 0 && least > 0; place--) {
    const line = lineOf(lines[place]);
    if (line.key === undefined || line.indent > least || (line.indent === least && line.dash === undefined)) continue;
    if (line.indent < least) path.unshift({ key: line.key, beside: siblingsOf(lines, place, line.indent) });
    least = line.indent;
    if (line.dash !== undefined) {
      path.unshift(ITEM);
      least = line.dash + 1;
    }
  }
  return path;
}

/** Keys with their values that stand beside a line, in the same map. */
function siblingsOf(lines: string[], at: number, indent: number): Map<string, string> {
  const found = new Map<string, string>();
  // Whether the map may go on beyond this line.
  const look = (place: number): boolean => {
    const text = (lines[place] ?? "").trim();
    const line = lineOf(lines[place]);
    if (text === "" || text.startsWith("#") || line.indent > indent) return true;
    if (line.indent === indent && line.key !== undefined) found.set(line.key, line.value);
    return line.indent === indent;
  };
  const begins = (place: number) => lineOf(lines[place]).dash !== undefined;
  for (let place = at; place > 0 && !begins(place) && look(place - 1); ) place--;
  for (let place = at + 1; place < lines.length && !begins(place) && look(place); ) place++;
  return found;
}

/** The forms of a schema that a map may have; with a form whose fixed values do not stand there left out. */
function forms(schema: Schema, beside: Map<string, string>): Schema[] {
  const all = [schema, ...(schema.anyOf ?? []).flatMap((each) => forms(each, beside))];
  return all.filter((each) =>
    Object.entries(each.properties ?? {}).every(([key, value]) => {
      const written = beside.get(key);
      return value.const === undefined || !written || written.replace(/["']/g, "") === value.const;
    }),
  );
}

/** What a key leads to, in every form. */
function below(schemas: Schema[], key: string): Schema[] {
  return schemas.flatMap((schema) => {
    if (key === "-") return schema.items ? [schema.items] : [];
    const named = schema.properties?.[key];
    if (named) return [named];
    return typeof schema.additionalProperties === "object" ? [schema.additionalProperties] : [];
  });
}

function kindOf(schema: Schema): string {
  const types = [schema.type ?? []].flat().filter((each) => each !== "null");
  const kind = types.join(" or ") || (schema.enum ? "one of" : schema.anyOf ? "map" : "");
  return schema.default === undefined || schema.default === "" ? kind : `${kind}, ${String(schema.default)} by default`;
}

function isMap(schema: Schema): boolean {
  return [schema, ...(schema.anyOf ?? [])].some((each) => [each.type ?? []].flat().includes("object"));
}

function isList(schema: Schema): boolean {
  return [schema, ...(schema.anyOf ?? [])].some((each) => [each.type ?? []].flat().includes("array"));
}

function values(schemas: Schema[]): Completion[] {
  const found = new Map<string, Completion>();
  const add = (value: unknown, schema: Schema, detail: string) => {
    const text = String(value);
    if (value !== null && value !== "" && !found.has(text))
      found.set(text, { text, detail, info: schema.description ?? "" });
  };
  for (const schema of schemas.flatMap((each) => forms(each, new Map()))) {
    for (const value of schema.enum ?? []) add(value, schema, value === schema.default ? "default" : "");
    if (schema.const !== undefined) add(schema.const, schema, "");
    if ([schema.type ?? []].flat().includes("boolean")) for (const value of [true, false]) add(value, schema, "");
    if (schema.default !== undefined) add(schema.default, schema, "default");
  }
  return [...found.values()];
}

/** Of a text with a cursor: the keys that its map may still have, or the values of its key. */
export function completionsAt(schema: Schema, text: string, cursor: number): Completions | undefined {
  const before = text.slice(0, cursor);
  const lines = text.split("\n");
  const at = before.split("\n").length - 1;
  const written = before.slice(before.lastIndexOf("\n") + 1);
  const value = /^\s*(?:- +)*([\w.-]+):\s+([\w.-]*)$/.exec(written);
  const key = /^(\s*(?:- +)*)([\w.-]*)$/.exec(written);
  if (!value && !key) return undefined;
  const [, lead = "", part = ""] = key ?? ["", /^\s*(?:- +)*/.exec(written)?.[0], value?.[2]];
  const indent = lead.length;
  const dash = lead.indexOf("-");
  const path = dash < 0 ? pathTo(lines, at, indent) : [...pathTo(lines, at, dash + 1), ITEM];
  let schemas = [schema];
  for (const step of path)
    schemas = below(
      schemas.flatMap((each) => forms(each, step.beside)),
      step.key,
    );
  const beside = siblingsOf(lines, at, indent);
  const maps = schemas.flatMap((each) => forms(each, beside));
  if (value) {
    const options = values(below(maps, value[1] ?? ""));
    return { from: cursor - part.length, options };
  }
  const known = new Map<string, Completion>();
  for (const each of maps)
    for (const [name, about] of Object.entries(each.properties ?? {})) {
      if (beside.has(name) || known.has(name) || about.deprecated) continue;
      const end = isMap(about) || isList(about) ? ":" : ": ";
      known.set(name, {
        text: `${name}${end}`,
        detail: about.const ? "" : kindOf(about),
        info: about.description ?? "",
      });
    }
  return { from: cursor - part.length, options: [...known.values()] };
}
