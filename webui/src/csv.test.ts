import { describe, expect, it } from "vitest";
import { cell } from "./csv";

describe("a cell of a file for spreadsheets", () => {
  it("holds its value, whatever that is", () => {
    expect([1e-7, -3, "a", null, undefined, true].map(cell)).toEqual(["1e-7", "-3", "a", "", "", "true"]);
    expect(cell('a "b", c')).toBe('"a ""b"", c"');
    expect(cell("two\nlines")).toBe('"two\nlines"');
  });

  it("is never run as a formula", () => {
    expect(cell("=1+1")).toBe("'=1+1");
    expect(cell('@x("a")')).toBe('"\'@x(""a"")"');
    expect(cell("-0.5")).toBe("-0.5");
  });
});
