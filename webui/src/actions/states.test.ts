import { describe, expect, it } from "vitest";
import type { State } from "../services/experiments";
import type { User } from "../services/session";
import { allows, mayChange, whyNotContinued } from "./states";

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

  it("says why what cannot be continued cannot, as the master does", () => {
    const why = (...of: Parameters<typeof standing>) => whyNotContinued(standing(...of), true) ?? "";
    expect(why("STATE_COMPLETED")).toBe("");
    expect(why("STATE_COMPLETED", true)).toContain("unarchive it first");
    expect(why("STATE_ERROR", false, true)).toContain("outside of this cluster");
    expect(why("STATE_PAUSED")).toContain("resume it");
    expect(why("STATE_RUNNING")).toContain("still running");
    expect(why("STATE_STOPPING_CANCELED")).toContain("still stopping");
    expect(why("STATE_DELETING")).toContain("deleted");
    expect(whyNotContinued(standing("STATE_COMPLETED"), false)).toContain("Only the owner");
    expect(whyNotContinued({ ...standing("STATE_COMPLETED", true), continuable: false }, true)).toContain("Fork the");
    for (const state of ["STATE_COMPLETED", "STATE_RUNNING", "STATE_DELETE_FAILED", "STATE_PAUSED"] as const) {
      for (const archived of [false, true]) {
        expect(why(state, archived) === "").toBe(allows(standing(state, archived), "continue"));
      }
    }
  });

  it("is for owners and administrators", () => {
    const user = (id: number, admin: boolean) => ({ id, admin }) as User;
    expect(mayChange(user(2, false), 2)).toBe(true);
    expect(mayChange(user(2, false), 3)).toBe(false);
    expect(mayChange(user(2, true), 3)).toBe(true);
  });
});
