/**
 * Patterns of names: regular expressions of the kind that the master takes for output (RE2), so what depends on what was
 * found before (look-arounds, back references) is none. All ways through a pattern are followed at once, a character of the
 * name after the other: no pattern takes longer than its length times that of the name, whoever sent it in an address.
 * Letters are found in either case. Pure.
 */

/** In characters, and in steps once repetitions are written out. */
const [MAX_PATTERN, MAX_STEPS] = [500, 1000];

type Takes = (char: string) => boolean;

/** Takes a character, goes on at several places (counted from its own), holds at a place of the name, or has found it. */
type Step =
  | { kind: "takes"; char: Takes }
  | { kind: "either"; to: number[] }
  | { kind: "holds"; at: (name: readonly string[], place: number) => boolean };

/** Whether a pattern is found in a name; undefined: that is no pattern. */
export function compiled(pattern: string): ((name: string) => boolean) | undefined {
  if (pattern.length > MAX_PATTERN) return undefined;
  try {
    const parser = new Parser([...pattern]);
    const steps = parser.either();
    parser.end();
    return (name) => isFound(steps, [...name]);
  } catch (error) {
    if (error instanceof NoPattern) return undefined;
    throw error;
  }
}

class NoPattern extends Error {}

function isFound(steps: readonly Step[], name: readonly string[]): boolean {
  let here = new Set<number>();
  for (let place = 0; place <= name.length; place += 1) {
    // It may begin anywhere.
    reach(steps, 0, name, place, here);
    if (here.has(steps.length)) return true;
    const next = new Set<number>();
    for (const at of here) {
      const step = steps[at];
      if (step?.kind === "takes" && place < name.length && step.char(name[place] as string))
        reach(steps, at + 1, name, place + 1, next);
    }
    if (next.has(steps.length)) return true;
    here = next;
  }
  return false;
}

/** All steps that are reached from one without taking a character. */
function reach(steps: readonly Step[], from: number, name: readonly string[], place: number, into: Set<number>): void {
  const open = [from];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (into.has(at)) continue;
    into.add(at);
    const step = steps[at];
    if (step?.kind === "either") for (const to of step.to) open.push(at + to);
    if (step?.kind === "holds" && step.at(name, place)) open.push(at + 1);
  }
}

class Parser {
  private place = 0;

  constructor(private readonly pattern: readonly string[]) {}

  private get next(): string | undefined {
    return this.pattern[this.place];
  }

  private take(): string {
    const char = this.next;
    if (char === undefined) throw new NoPattern();
    this.place += 1;
    return char;
  }

  private takeIf(char: string): boolean {
    if (this.next !== char) return false;
    this.place += 1;
    return true;
  }

  end(): void {
    if (this.next !== undefined) throw new NoPattern();
  }

  /** `a|b`. */
  either(): Step[] {
    const first = this.sequence();
    if (!this.takeIf("|")) return first;
    const other = this.either();
    return bounded([
      { kind: "either", to: [1, first.length + 2] },
      ...first,
      { kind: "either", to: [other.length + 1] },
      ...other,
    ]);
  }

  private sequence(): Step[] {
    let steps: Step[] = [];
    while (this.next !== undefined && this.next !== "|" && this.next !== ")") {
      steps = bounded([...steps, ...this.repeated(this.one())]);
    }
    return steps;
  }

  /** `a*`, `a+`, `a?`, `a{2,5}`; whether as few as possible are taken says nothing of whether it is found. */
  private repeated(one: Step[]): Step[] {
    const [least, most] = this.takeIf("*")
      ? [0, Number.POSITIVE_INFINITY]
      : this.takeIf("+")
        ? [1, Number.POSITIVE_INFINITY]
        : this.takeIf("?")
          ? [0, 1]
          : this.takeIf("{")
            ? this.counts()
            : [1, 1];
    if (least !== 1 || most !== 1) this.takeIf("?");
    const isEndless = most === Number.POSITIVE_INFINITY;
    if ((isEndless ? least + 1 : most) * (one.length + 1) > MAX_STEPS) throw new NoPattern();
    const steps = Array.from({ length: least }, () => one).flat();
    if (isEndless) {
      return [...steps, { kind: "either", to: [1, one.length + 2] }, ...one, { kind: "either", to: [-one.length - 1] }];
    }
    const maybe: Step[] = [{ kind: "either", to: [1, one.length + 1] }, ...one];
    return [...steps, ...Array.from({ length: most - least }, () => maybe).flat()];
  }

  private counts(): [number, number] {
    const least = this.number();
    const most = !this.takeIf(",") ? least : this.next === "}" ? Number.POSITIVE_INFINITY : this.number();
    if (!this.takeIf("}") || most < least) throw new NoPattern();
    return [least, most];
  }

  private number(): number {
    let digits = "";
    while (/^[0-9]$/.test(this.next ?? "") && digits.length < 4) digits += this.take();
    if (digits === "") throw new NoPattern();
    return Number(digits);
  }

  private one(): Step[] {
    const char = this.take();
    if (char === "(") {
      if (this.takeIf("?") && !this.takeIf(":")) throw new NoPattern();
      const steps = this.either();
      if (!this.takeIf(")")) throw new NoPattern();
      return steps;
    }
    if (char === "^") return [{ kind: "holds", at: (_, place) => place === 0 }];
    if (char === "$") return [{ kind: "holds", at: (name, place) => place === name.length }];
    if (char === ".") return [{ kind: "takes", char: (each) => each !== "\n" }];
    if (char === "[") return [{ kind: "takes", char: this.set() }];
    if ("*+?{".includes(char)) throw new NoPattern();
    if (char !== "\\") return [{ kind: "takes", char: inEitherCase((each) => each === char) }];
    if (this.takeIf("b")) return [{ kind: "holds", at: isEdge }];
    if (this.takeIf("B")) return [{ kind: "holds", at: (name, place) => !isEdge(name, place) }];
    const escaped = this.escaped();
    return [{ kind: "takes", char: typeof escaped === "string" ? inEitherCase((each) => each === escaped) : escaped }];
  }

  /** `[a-z_]`, `[^0-9]`. */
  private set(): Takes {
    const isOthers = this.takeIf("^");
    const parts: Takes[] = [];
    do {
      const from = this.member();
      const isRange = this.next === "-" && this.pattern[this.place + 1] !== "]";
      if (!isRange || typeof from !== "string") {
        parts.push(typeof from === "string" ? (char) => char === from : from);
        continue;
      }
      this.take();
      const to = this.member();
      if (typeof to !== "string" || to < from) throw new NoPattern();
      parts.push((char) => from <= char && char <= to);
    } while (this.next !== "]");
    this.take();
    const has = inEitherCase((char) => parts.some((part) => part(char)));
    return isOthers ? (char) => !has(char) : has;
  }

  private member(): string | Takes {
    const char = this.take();
    return char === "\\" ? this.escaped() : char;
  }

  private escaped(): string | Takes {
    const char = this.take();
    const kind = KINDS[char.toLowerCase()];
    if (kind) return char === char.toLowerCase() ? kind : (each) => !kind(each);
    if (char === "t") return "\t";
    if (/^[A-Za-z0-9]$/.test(char)) throw new NoPattern();
    return char;
  }
}

const KINDS: Record<string, Takes> = {
  d: (char) => /^[0-9]$/.test(char),
  w: (char) => /^[0-9A-Za-z_]$/.test(char),
  s: (char) => /^\s$/.test(char),
};

function isEdge(name: readonly string[], place: number): boolean {
  const isWord = (char: string | undefined) => char !== undefined && KINDS.w?.(char) === true;
  return isWord(name[place - 1]) !== isWord(name[place]);
}

function inEitherCase(takes: Takes): Takes {
  return (char) => takes(char) || takes(char.toLowerCase()) || takes(char.toUpperCase());
}

function bounded(steps: Step[]): Step[] {
  if (steps.length > MAX_STEPS) throw new NoPattern();
  return steps;
}
