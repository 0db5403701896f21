import { describe, expect, it } from "vitest";
import { fromPlace, isWords, toPlace } from "./filter";

describe("places in a filter", () => {
  it("count characters as the master does", () => {
    const text = "a😀b ü";
    expect(toPlace(text, 3)).toBe(2);
    expect(fromPlace(text, 2)).toBe(3);
    expect(text.slice(fromPlace(text, 2))).toBe("b ü");
    expect(fromPlace("abc", 9)).toBe(3);
  });
});

it("words alone are right whatever they are", () => {
  for (const text of ["amber", "two words", "größe-1_b", "実験 3"]) expect(isWords(text), text).toBe(true);
  const others = ["", "a:b", "a  b", '"a"', "(a", "a<1", "a OR b", "NOT", "a,b", "-a", "a.b", `a${"a".repeat(200)}`];
  for (const text of others) expect(isWords(text), text).toBe(false);
});
