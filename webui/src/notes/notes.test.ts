import { expect, test } from "vitest";
import { type Block, type Inline, inlines, markdown } from "./markdown";
import { changed } from "./merge";

/** The words of a tree. */
function words(of: (Block | Inline)[]): string {
  return JSON.stringify(of);
}

test("headings, lists, code, quotes and tables are read", () => {
  const text =
    "# Plan\n\n1. first\n2. second\n   - inner\n\n```py\nx = '<b>'\n```\n> said\n\n| a | b |\n|---|---|\n| 1 | `2` |";
  const kinds = markdown(text).map((block) => block.kind);
  expect(kinds).toEqual(["heading", "list", "code", "quote", "table"]);
  expect(markdown(text)[1]).toMatchObject({ ordered: true, start: 1, items: [[{}], [{}, { kind: "list" }]] });
  expect(markdown(text)[2]).toEqual({ kind: "code", text: "x = '<b>'" });
});

test("html is text, and only harmless addresses are links", () => {
  expect(inlines("<img src=x onerror=alert(1)>")).toEqual([{ kind: "text", text: "<img src=x onerror=alert(1)>" }]);
  for (const text of ["[go](javascript:alert(1))", "[go](data:text/html,x)", "[go]( JaVaScRiPt:x)", "[a](//evil)"]) {
    expect(words(inlines(text))).not.toContain('"link"');
  }
  expect(inlines("[go](https://a.test/x)")).toEqual([
    { kind: "link", to: "https://a.test/x", of: [{ kind: "text", text: "go" }] },
  ]);
  expect(inlines("see https://a.test/x.")[1]).toMatchObject({ kind: "link", to: "https://a.test/x" });
  expect(inlines("![](https://a.test/x)")[0]).toMatchObject({ kind: "link" });
});

test("signs mark text, and stay signs where they have no second one", () => {
  expect(inlines("a **b _c_** `d*` e*")).toEqual([
    { kind: "text", text: "a " },
    {
      kind: "strong",
      of: [
        { kind: "text", text: "b " },
        { kind: "emphasis", of: [{ kind: "text", text: "c" }] },
      ],
    },
    { kind: "text", text: " " },
    { kind: "code", text: "d*" },
    { kind: "text", text: " e*" },
  ]);
  expect(inlines("val_loss_min 2 * 3 * 4")).toEqual([{ kind: "text", text: "val_loss_min 2 * 3 * 4" }]);
  expect(inlines("\\*not\\*")).toEqual([{ kind: "text", text: "*not*" }]);
});

test("what never ends is read all the same", () => {
  for (const sign of ["*", "_", "`", "[", ">", "- ", "!", "**a", "|", "> - ", "~~", "\\"]) {
    const text = sign.repeat(15_000);
    expect(words(markdown(text)).length).toBeGreaterThan(0);
    expect(words(markdown(`${text}\n`.repeat(2))).length).toBeGreaterThan(0);
  }
});

test("spaces without an end, before what makes a line none of its kind, are read in one go", () => {
  const wide = " ".repeat(60_000);
  for (const line of [
    `# a${wide}#x`,
    `# a${wide}x`,
    `|a|\n|-${wide}x`,
    `|a|\n|-${`${wide}|-`.repeat(3)}x`,
    `-${wide}x`,
  ]) {
    expect(words(markdown(line)).length).toBeGreaterThan(0);
  }
  expect(words(inlines(`[a](${" ".repeat(3000)}`.repeat(6))).length).toBeGreaterThan(0);
  expect(markdown("## a b ##  ")).toEqual([{ kind: "heading", level: 2, of: [{ kind: "text", text: "a b" }] }]);
  expect(markdown("# a#")).toEqual([{ kind: "heading", level: 1, of: [{ kind: "text", text: "a#" }] }]);
});

test("a table has as many cells as were written", () => {
  const [table] = markdown(`${"|a".repeat(10_000)}|\n|-|\n${"|b|\n".repeat(10_000)}`);
  expect(table?.kind === "table" && table.rows.flat().length).toBe(10_000);
});

const PLAN = { name: "plan", contents: "one" };
const LOG = { name: "log", contents: "two" };

test("a change of one note keeps what others did to the rest", () => {
  const mine = { name: "log", contents: "mine" };
  const put = { kind: "put" as const, at: 1, of: LOG, note: mine };
  expect(changed([{ ...PLAN, contents: "theirs" }, LOG], put)).toEqual([{ ...PLAN, contents: "theirs" }, mine]);
  expect(changed([LOG], put)).toEqual([mine]);
  expect(changed([PLAN, { ...LOG, contents: "theirs" }], put)).toBeUndefined();
  expect(changed([PLAN], { kind: "drop", at: 1, of: LOG })).toBeUndefined();
  expect(changed([PLAN, LOG], { kind: "drop", at: 0, of: PLAN })).toEqual([LOG]);
  expect(changed([PLAN], { kind: "add", note: LOG })).toEqual([PLAN, LOG]);
});
