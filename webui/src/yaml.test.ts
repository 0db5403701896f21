import { expect, it } from "vitest";
import { yaml } from "./yaml";

it("writes what YAML reads back as the same", () => {
  const config = { a: { lr: 0.1, on: "yes", none: null, empty: {}, list: [] }, steps: [{ x: 1, y: [2] }, "a: b", ""] };
  expect(yaml(config)).toBe(
    'a:\n  lr: 0.1\n  "on": "yes"\n  none: null\n  empty: {}\n  list: []\nsteps:\n  - x: 1\n    y:\n      - 2\n  - "a: b"\n  - ""\n',
  );
});
