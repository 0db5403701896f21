import { describe, expect, it } from "vitest";
import { caps, KEYS, meaning, spelled } from "./table";

function pressed(key: string, modifiers: Partial<KeyboardEvent> = {}): string {
  return spelled({ key, ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, ...modifiers });
}

describe("the table of keys", () => {
  it("has each key once outside of outputs and once in them, and none that begins another", () => {
    const every: string[] = Object.values(KEYS).flatMap((each) => [...each.keys]);
    for (const inOutput of [true, false]) {
      const keys = Object.values(KEYS).filter((each) => (each.group === "In an output") === inOutput);
      const some: string[] = keys.flatMap((each) => [...each.keys]);
      expect(new Set(some).size).toBe(some.length);
    }
    for (const keys of every) expect(every.some((other) => other.startsWith(`${keys} `))).toBe(false);
  });

  it("spells what is pressed as it spells its keys", () => {
    expect(pressed("k", { ctrlKey: true })).toBe("Mod+k");
    expect(pressed("k", { metaKey: true })).toBe("Mod+k");
    expect(pressed("K", { shiftKey: true })).toBe("Shift+K");
    expect(pressed("ArrowDown", { shiftKey: true })).toBe("Shift+ArrowDown");
    expect(pressed("?", { shiftKey: true })).toBe("?");
    expect(pressed("/")).toBe("/");
    expect(pressed("p", { altKey: true })).toBe("");
  });

  it("knows the second key after the first", () => {
    expect(meaning("g")).toEqual({ names: [], prefix: true });
    expect(meaning("h", "g").names).toEqual(["home"]);
    expect(meaning("h").names).toEqual([]);
    expect(meaning("p").names).toEqual(["hold"]);
    expect(meaning("e").names).toEqual(["nextError", "edit"]);
  });

  it("writes keys as they stand on a keyboard", () => {
    expect(caps("g h")).toEqual(["g", "h"]);
    expect(caps("Shift+K")).toEqual(["Shift", "K"]);
    expect(caps("Mod+k")[1]).toBe("K");
  });
});
