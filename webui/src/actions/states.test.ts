import { describe, expect, it } from "vitest";
import type { State } from "../services/experiments";
import type { User } from "../services/session";
import { allows, mayChange } from "./states";

function standing(state: State, archived = false, unmanaged = false) {
  return { state, archived, unmanaged, continuable: true };
}

const VERBS = ["pause", "activate", "cancel", "kill", "archive", "unarchive", "delete", "move", "continue"] as const;

function allowed(state: State, archived = false, unmanaged = false): string {
  return VERBS.filter((verb) => allows(standing(state, archived, unmanaged), verb)).join(" ");
}

describe("what the state of an experiment lets one do", () => {
  it("follows the machine of the master", () => {
    expect(allowed("STATE_QUEUED")).toBe("pause cancel kill move");
    expect(allowed("STATE_RUNNING")).toBe("pause cancel kill move");
    expect(allowed("STATE_PAUSED")).toBe("activate cancel kill move");
    expect(allowed("STATE_STOPPING_CANCELED")).toBe("kill move");
    expect(allowed("STATE_COMPLETED")).toBe("archive delete move continue");
    expect(allowed("STATE_COMPLETED", true)).toBe("unarchive delete");
    expect(allowed("STATE_DELETE_FAILED")).toBe("archive delete move");
    expect(allowed("STATE_DELETING")).toBe("");
  });

  it("offers nothing that needs this cluster for what is trained elsewhere", () => {
    expect(allowed("STATE_ACTIVE", false, true)).toBe("cancel kill move");
    expect(allowed("STATE_ERROR", false, true)).toBe("archive delete move");
  });

  it("offers to continue what its search lets go on", () => {
    const ended = (continuable: boolean) => ({ ...standing("STATE_COMPLETED"), continuable });
    expect(allows(ended(true), "continue")).toBe(true);
    expect(allows(ended(false), "continue")).toBe(false);
  });

  it("is for owners and administrators", () => {
    const user = (id: number, admin: boolean) => ({ id, admin }) as User;
    expect(mayChange(user(2, false), 2)).toBe(true);
    expect(mayChange(user(2, false), 3)).toBe(false);
    expect(mayChange(user(2, true), 3)).toBe(true);
  });
});
