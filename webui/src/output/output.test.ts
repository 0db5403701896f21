import { describe, expect, it } from "vitest";
import { blocks } from "./blocks";
import { pieces, plain } from "./escapes";
import { Ranges } from "./ranges";

describe("pieces", () => {
  it("shows colours by our own tokens until they end", () => {
    expect(pieces("a\u001b[1;31mred\u001b[0m b\n")).toEqual([
      { text: "a", className: "" },
      { text: "red", className: "text-bad font-semibold" },
      { text: " b", className: "" },
    ]);
  });
  it("keeps what stands after the last return, and the colour from before it", () => {
    expect(pieces("\u001b[32m 10%\r100%\r")).toEqual([{ text: "100%", className: "text-ok" }]);
  });
  it("takes the numbers of a larger palette for no colours of ours", () => {
    expect(pieces("\u001b[38;5;31mx\u001b[48;2;31;32;33my")).toEqual([
      { text: "x", className: "" },
      { text: "y", className: "" },
    ]);
  });
  it("hides nothing else: not other sequences, not what turns the direction of text", () => {
    expect(plain("\u001b[2Ka\u0007\u202eb\u001b]0;title\u0007<b>")).toBe("␛[2Ka␇<U+202E>b␛]0;title␇<b>");
  });
});

describe("Ranges", () => {
  const made = new Ranges();
  made.add([3, 10], [5, 10]);
  made.add([11, 20], [12, 29]);
  it("knows the n-th number", () => {
    expect([0, 2, 3, 4, 5, 6, 15, 16].map((place) => made.at(place))).toEqual([3, 5, 10, 11, 12, 20, 29, undefined]);
    expect(made.at(-1)).toBeUndefined();
    expect(made.count).toBe(16);
  });
  it("knows how many are less, and which are in it", () => {
    expect([0, 3, 5, 6, 10, 12, 13, 20, 99].map((number) => made.below(number))).toEqual([0, 0, 2, 3, 3, 5, 6, 6, 16]);
    expect([2, 3, 6, 10, 13, 29, 30].map((number) => made.has(number))).toEqual([
      false,
      true,
      false,
      true,
      false,
      true,
      false,
    ]);
  });
});

describe("blocks", () => {
  it("fetches whole blocks, and the next one before its lines are in view", () => {
    expect(blocks(1010, 1090, 1_000_000)).toEqual({ first: 800, end: 1200 });
    // A few lines on it is the same: one request for a block, not one for a frame.
    expect(blocks(1040, 1095, 1_000_000)).toEqual({ first: 800, end: 1200 });
    expect(blocks(1110, 1190, 1_000_000)).toEqual({ first: 1000, end: 1400 });
  });
  it("keeps to the lines that there are", () => {
    expect(blocks(-90, 9, 10)).toEqual({ first: 0, end: 10 });
    expect(blocks(0, -1, 10)).toEqual({ first: 0, end: 0 });
  });
});
