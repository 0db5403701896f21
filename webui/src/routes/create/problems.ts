/** What the master finds wrong with a configuration, by the lines of its text. Pure. */

export interface Problem {
  /** From 1; undefined: of the whole. */
  line?: number;
  message: string;
}

const AT_LINE = /^(.*?) \(line (\d+)\): (.*)$/s;

/** The problems that a refusal lists, each a line that is indented; a refusal of another kind is one problem. */
export function problemsOf(refusal: string): Problem[] {
  const listed = refusal.split("\n").filter((line) => line.startsWith("  "));
  return (listed.length > 0 ? listed : [refusal]).map((line) => {
    const [, path, number, message] = AT_LINE.exec(line.trim()) ?? [];
    if (number === undefined) return { message: line.trim() };
    return { line: Number(number), message: `${path}: ${message}` };
  });
}
