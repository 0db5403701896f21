import { expect, test } from "vitest";
import { completionsAt, type Schema } from "./completion";

const SEARCHER = (name: string, properties: Record<string, Schema>): Schema => ({
  type: "object",
  properties: { name: { const: name, description: `About ${name}.` }, metric: { type: "string" }, ...properties },
});
const SCHEMA: Schema = {
  type: "object",
  properties: {
    name: { type: ["string", "null"], description: "What it is called." },
    debug: { type: ["boolean", "null"], default: false },
    security: { type: "object", deprecated: true },
    resources: {
      type: ["object", "null"],
      properties: { slots_per_trial: { type: "integer", default: 1 }, is_single_node: { type: "boolean" } },
    },
    searcher: {
      anyOf: [
        {
          type: "object",
          anyOf: [
            SEARCHER("single", {}),
            SEARCHER("adaptive_asha", { mode: { enum: ["standard", "aggressive", null], default: "standard" } }),
          ],
        },
        { type: "null" },
      ],
    },
    hyperparameters: {
      type: "object",
      additionalProperties: {
        anyOf: [
          { type: "object", properties: { type: { const: "int" }, minval: { type: "integer" } } },
          { type: "object", properties: { type: { const: "log" }, base: { type: "number" } } },
          {},
        ],
      },
    },
    bind_mounts: {
      type: "array",
      items: { type: "object", properties: { host_path: { type: "string" }, read_only: { type: "boolean" } } },
    },
  },
};

/** Texts that are offered where `|` stands. */
function offered(marked: string): string[] {
  const cursor = marked.indexOf("|");
  return completionsAt(SCHEMA, marked.replace("|", ""), cursor)?.options.map(({ text }) => text) ?? [];
}

test("keys that the map does not have yet, without those that have no effect", () => {
  expect(offered("name: x\n|\nsearcher:\n  name: single\n")).toEqual([
    "debug: ",
    "resources:",
    "hyperparameters:",
    "bind_mounts:",
  ]);
  expect(offered("resources:\n  |")).toEqual(["slots_per_trial: ", "is_single_node: "]);
});

test("what replaces a part of a word begins where the word does", () => {
  const text = "resources:\n  slo";
  expect(completionsAt(SCHEMA, text, text.length)?.from).toBe(text.length - 3);
});

test("values: of an enum, of a flag, a default, and what tells kinds apart", () => {
  expect(offered("debug: |")).toEqual(["true", "false"]);
  expect(offered("searcher:\n  name: |")).toEqual(["single", "adaptive_asha"]);
  expect(offered("searcher:\n  name: adaptive_asha\n  mode: |")).toEqual(["standard", "aggressive"]);
  expect(offered("resources:\n  slots_per_trial: |")).toEqual(["1"]);
});

test("keys of the kind that its name says, wherever the name stands", () => {
  expect(offered("searcher:\n  name: single\n  |")).toEqual(["metric: "]);
  expect(offered("searcher:\n  |\n  name: adaptive_asha\n")).toEqual(["metric: ", "mode: "]);
  expect(offered("hyperparameters:\n  lr:\n    type: log\n    |")).toEqual(["base: "]);
  expect(offered("hyperparameters:\n  lr:\n    |")).toEqual(["type: ", "minval: ", "base: "]);
});

test("items of a list are maps of their own", () => {
  expect(offered("bind_mounts:\n  - |")).toEqual(["host_path: ", "read_only: "]);
  expect(offered("bind_mounts:\n  - host_path: /a\n    |")).toEqual(["read_only: "]);
  expect(offered("bind_mounts:\n  - host_path: /a\n  - |")).toEqual(["host_path: ", "read_only: "]);
});

test("nothing where nothing is known, in a comment or in a text", () => {
  expect(offered("name: two words |")).toEqual([]);
  expect(offered("# |")).toEqual([]);
  expect(offered("unknown:\n  deep:\n    |")).toEqual([]);
});
