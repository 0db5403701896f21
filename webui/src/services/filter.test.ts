import { describe, expect, it } from "vitest";
import { fromPlace, toPlace } from "./filter";

describe("places in a filter", () => {
  it("count characters as the master does", () => {
    const text = "a😀b ü";
    expect(toPlace(text, 3)).toBe(2);
    expect(fromPlace(text, 2)).toBe(3);
    expect(text.slice(fromPlace(text, 2))).toBe("b ü");
    expect(fromPlace("abc", 9)).toBe(3);
  });
});
