import { describe, expect, it } from "vitest";
import { ago, duration, number, percent } from "./format";

describe("number", () => {
  it("has four significant digits, and an exponent where the value is tiny", () => {
    expect([0.123456, 12345.678, 1234, 0.0000012345, 0].map(number)).toEqual([
      "0.1235",
      "12350",
      "1,234",
      "1.23e-6",
      "0",
    ]);
  });
  it("writes what is no number in words, and nothing as a dash", () => {
    expect([Number.NaN, Number.POSITIVE_INFINITY, null, undefined].map(number)).toEqual(["NaN", "∞", "–", "–"]);
  });
});

describe("duration", () => {
  it("has two units", () => {
    expect([5, 65, 3600, 7322, 90000].map(duration)).toEqual(["5 s", "1 m 5 s", "1 h", "2 h 2 m", "1 d 1 h"]);
  });
});

describe("ago", () => {
  it("is never in the future, whatever the clocks say", () => {
    const now = new Date("2026-01-01T00:00:00Z");
    expect(ago("2026-01-01T00:05:00Z", now)).toBe("just now");
    expect(ago("2025-12-31T23:00:00Z", now)).toBe("1 h ago");
  });
});

describe("percent", () => {
  it("says 100 only of what is complete", () => {
    expect([0.999, 1, 0.5, -1].map(percent)).toEqual(["99 %", "100 %", "50 %", "0 %"]);
  });
});
