import { describe, expect, it } from "vitest";
import { sessionEnded } from "./ended";

describe("the end of a session", () => {
  it("is that nobody knows it, or that its user was deactivated", () => {
    expect(sessionEnded(401, "no")).toBe(true);
    expect(sessionEnded(403, "user is not active: eve was deactivated; ask an administrator")).toBe(true);
  });

  it("is no refusal of anything else", () => {
    expect(sessionEnded(403, "only administrators may do this: log in as one")).toBe(false);
    expect(sessionEnded(404, "user is not active")).toBe(false);
  });
});
