import { describe, expect, it } from "vitest";
import { fromField, toField } from "./moments";

describe("moments of a field", () => {
  it("come back as they were, to the minute", () => {
    const moment = "2026-03-04T05:06:00.000Z";
    expect(fromField(toField(moment))).toBe(moment);
  });
  it("are nothing where nothing was chosen", () => {
    expect([toField(null), toField(undefined), fromField(""), fromField("never")]).toEqual([
      "",
      "",
      undefined,
      undefined,
    ]);
  });
});
