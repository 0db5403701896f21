import { describe, expect, it } from "vitest";
import { blamed } from "./blame";

const FIELDS = { username: /user name|already exists/, displayName: /displayName/ };

describe("blamed", () => {
  it("names the first field that a refusal is about", () => {
    expect(blamed("user 'a' already exists: choose another name", FIELDS)).toBe("username");
    expect(blamed("displayName: 'admin' is another user's name", FIELDS)).toBe("displayName");
  });
  it("names none for what is about the whole", () => {
    expect(blamed("'a' is the last active administrator: make another one first", FIELDS)).toBeUndefined();
  });
});
