import { expect, test } from "vitest";
import { clicked, sortsOf, sortText, writtenSorts } from "./sorts";

test("a click sorts by one column, with Shift by several, falling, rising, and no more", () => {
  expect(clicked("-id", "name", false)).toBe("-name");
  expect(clicked("-name", "name", false)).toBe("name");
  expect(clicked("-id,-name", "name", false)).toBe("-name");
  expect(clicked("-state", "name", true)).toBe("-state,-name");
  expect(clicked("-state,-name", "name", true)).toBe("-state,name");
  expect(clicked("-state,name", "name", true)).toBe("-state");
  expect(clicked("state", "state", true)).toBe("-state");
});

test("the master has each column once, and numbers last", () => {
  expect(sortText("-validation.loss.last,name,-name")).toBe("validation.loss.last=desc,name=asc,id=desc");
  expect(sortText("id")).toBe("id=asc");
  expect(writtenSorts(sortsOf("a,,-b,a"))).toBe("a,-b");
  expect(sortsOf("a,b,c,d,e,f")).toHaveLength(5);
});
