import { expect, test } from "vitest";
import { compared, labelsOf, metadataOf } from "./compared";

test("metrics stand beside those of the version before, validations first", () => {
  const now = {
    validationMetrics: { avgMetrics: { loss: 0.5, note: "text" } },
    trainingMetrics: { avgMetrics: { lr: "NaN" } },
  };
  const before = { validationMetrics: { avgMetrics: { loss: 0.75, acc: 1 } }, trainingMetrics: null };
  expect(compared(now, before)).toEqual([
    { name: "validation acc", now: undefined, before: 1 },
    { name: "validation loss", now: 0.5, before: 0.75 },
    { name: "training lr", now: Number.NaN, before: undefined },
  ]);
  expect(compared(undefined, undefined)).toEqual([]);
});

test("labels are lines, and metadata are an object", () => {
  expect(labelsOf(" a \n\nb\na")).toEqual(["a", "b"]);
  expect(metadataOf("")).toEqual({});
  expect(metadataOf('{"a": [1]}')).toEqual({ a: [1] });
  for (const wrong of ["[1]", "null", "x", '"a"']) expect(() => metadataOf(wrong)).toThrow("JSON");
});
