import { describe, expect, it } from "vitest";
import { ownAddress } from "./base";

describe("ownAddress", () => {
  it("leads to addresses of this page", () => {
    expect(ownAddress("/experiments?state=error&sort=-id")).toBe("/experiments?state=error&sort=-id");
  });
  it("leads home from whatever is not one", () => {
    for (const next of [undefined, "", "//evil.example", "https://evil.example", "/\\evil.example", "/login?next=/"]) {
      expect(ownAddress(next)).toBe("/");
    }
  });
  it("leads home from what leaves the page by going up", () => {
    for (const next of ["/../..//evil.example", "/%2e%2E/.%2e", "/experiments/../../../x"])
      expect(ownAddress(next)).toBe("/");
    expect(ownAddress("/trials/1?tab=code&file=../x")).toBe("/trials/1?tab=code&file=../x");
  });
});
