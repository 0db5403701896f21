import { describe, expect, it } from "vitest";
import { type ConditionGroup, treeOf, writtenFilter } from "./filterTree";

/** As the master answers for `(state:error,paused OR NOT "a b">0.5) has:lr "AND"`. */
const READ = {
  any: false,
  parts: [
    {
      any: true,
      parts: [
        { column: "state", operator: ":", values: ["error", "paused"], quoted: false },
        { not: { column: "a b", operator: ">", values: ["0.5"], quoted: false } },
      ],
    },
    { column: "has", operator: ":", values: ["lr"], quoted: false },
    { values: ["AND"], quoted: true },
  ],
};

describe("a filter that is built", () => {
  it("is written in the language that is typed", () => {
    expect(writtenFilter(treeOf(READ))).toBe('(state:error,paused OR NOT "a b">0.5) has:lr "AND"');
    expect(writtenFilter(treeOf({ any: false, parts: [{ any: true, parts: READ.parts }] }))).toMatch(/ OR has:lr OR /);
    expect(writtenFilter(treeOf(null))).toBe("");
  });

  it("quotes what would be read otherwise", () => {
    const tree: ConditionGroup = {
      any: false,
      not: true,
      parts: [
        { column: "name", operator: "=", values: ['a "b" \\', "c,d"] },
        { column: "owner", operator: ":", values: ["me"], quoted: true },
        { operator: ":", values: ["OR"] },
      ],
    };
    expect(writtenFilter(tree)).toBe('NOT (name="a \\"b\\" \\\\","c,d" owner:"me" "OR")');
  });

  it("leaves out what is not whole yet", () => {
    const half = { column: "lr", operator: ">", values: [""] };
    expect(writtenFilter({ any: true, parts: [half, { any: false, parts: [half] }] })).toBe("");
    expect(writtenFilter({ any: true, parts: [half, { column: "lr", operator: "has", values: [], not: true }] })).toBe(
      "NOT has:lr",
    );
  });
});
