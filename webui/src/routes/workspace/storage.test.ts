import { expect, test } from "vitest";
import { storageOf, writtenOf } from "./storage";

test("what is stored comes back as it was, but for secrets and what another kind has", () => {
  const stored = { type: "s3", bucket: "b", prefix: null, secret_key: "********", save_trial_best: 3 };
  expect(writtenOf(stored)).toEqual({ type: "s3", bucket: "b", save_trial_best: "3" });
  expect(storageOf({ ...writtenOf(stored), host_path: "/x", secret_key: "k" })).toEqual({
    type: "s3",
    bucket: "b",
    secret_key: "k",
    save_trial_best: 3,
  });
});

test("no storage of its own is an empty document", () => {
  expect(writtenOf(null)).toEqual({ type: "" });
  expect(storageOf({ type: "", bucket: "left over" })).toEqual({});
});
