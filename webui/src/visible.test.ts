import { expect, test } from "vitest";
import { visible } from "./visible";

test("what has no shape, or turns text around, is shown, and nothing else is changed", () => {
  const plain = "loss/été 損失 🎉\t<b>";
  expect(visible(plain)).toBe(plain);
  expect(visible("a\u200bb\u202ec\u2066d\u061ce\u00adf\u2028g")).toBe(
    "a<U+200B>b<U+202E>c<U+2066>d<U+061C>e<U+00AD>f<U+2028>g",
  );
  expect(visible("a\u{e0041}\u3164\u0000\u007f")).toBe("a<U+E0041><U+3164>\u2400\u2421");
});
