import { expect, test } from "vitest";
import { named } from "./named";
import { compiled } from "./pattern";

const NAMES = [
  "",
  "loss",
  "val_loss",
  "Val/Accuracy",
  "lr",
  "aaaa",
  "top-5 error",
  "grad.norm",
  "epoch 12",
  "ö{2}",
  "a]b^c$",
];
/** What browsers take and this takes as well. */
const SAME = [
  ...[
    "loss",
    "^val",
    "loss$",
    "^(train|val)[_/]",
    "a{2,3}$",
    "^a{4}$",
    "^a{5}",
    "a{3,}",
    "[0-9]+",
    "[^a-z]",
    "\\d{2}",
    "\\s",
  ],
  ...[
    "^\\w+$",
    "\\W",
    "gr.d\\.norm",
    "^$",
    "(l|L)oss",
    "(?:acc|err)",
    "o+s*?s",
    "x|",
    "^(a|aa)+$",
    "\\bnorm\\b",
    "\\Bss",
  ],
  ...["[\\w-]+-5", "[a\\-z]", "\\]b\\^c\\$", "(a*)*$", "((x?)*)*y?$", "ACCURACY", "[A-C]CC"],
];

test("what is a pattern finds what browsers find", () => {
  for (const pattern of SAME) {
    const own = compiled(pattern);
    const theirs = new RegExp(pattern, "iu");
    for (const name of NAMES) expect(own?.(name), `${pattern} in ${name}`).toBe(theirs.test(name));
  }
});

test("what is no pattern, or depends on what was found before, is none", () => {
  for (const pattern of [
    "(",
    ")",
    "a(b",
    "[a",
    "[z-a]",
    "*a",
    "a{3,1}",
    "a{",
    "\\",
    "(?=a)",
    "(?<!a)b",
    "(a)\\1",
    "\\q",
  ])
    expect(compiled(pattern), pattern).toBeUndefined();
  // Nor is what would be long once it is written out.
  for (const pattern of ["(((a{9}){9}){9}){9}", "a{9999}", "a".repeat(501)]) expect(compiled(pattern)).toBeUndefined();
});

test("a pattern that has very many ways through a name is answered all the same", () => {
  // Each further letter doubles what a browser's own would take: this test would not end.
  const name = `${"a".repeat(200)}!`;
  for (const pattern of ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "^(.*a){20}$", "^([a-z]+)*\\d$"]) {
    expect(named(pattern, true)?.(name), pattern).toBe(false);
    expect(named(pattern, true)?.(`${name}a1`), pattern).toBe(false);
  }
});

test("without a pattern names are found by a part of them", () => {
  expect(named("(A+", false)?.("x(a+b")).toBe(true);
  expect(named("a+", false)?.("aaa")).toBe(false);
  expect(named("val_(", true)).toBeUndefined();
});
