/** What two versions of a model reached, beside one another. Pure. */

type Metrics = { avgMetrics?: Record<string, unknown> } | null | undefined;

interface Training {
  trainingMetrics?: Metrics;
  validationMetrics?: Metrics;
}

export interface Compared {
  /** `validation loss`. */
  name: string;
  now?: number;
  before?: number;
}

/** JSON has no words for what is no number; the master writes them as texts. */
function numberOf(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  return typeof value === "string" && /^-?(?:NaN|Infinity)$/.test(value) ? Number(value) : undefined;
}

function valuesOf(training: Training | null | undefined): Map<string, number> {
  const values = new Map<string, number>();
  for (const [group, metrics] of [
    ["validation", training?.validationMetrics],
    ["training", training?.trainingMetrics],
  ] as const) {
    for (const [name, value] of Object.entries(metrics?.avgMetrics ?? {})) {
      const number = numberOf(value);
      if (number !== undefined) values.set(`${group} ${name}`, number);
    }
  }
  return values;
}

/** All that one of them has, validations first. */
export function compared(now: Training | null | undefined, before: Training | null | undefined): Compared[] {
  const present = valuesOf(now);
  const former = valuesOf(before);
  const names = [...new Set([...present.keys(), ...former.keys()])];
  const order = (name: string) => (name.startsWith("validation ") ? 0 : 1);
  names.sort((a, b) => order(a) - order(b) || a.localeCompare(b));
  return names.map((name) => ({ name, now: present.get(name), before: former.get(name) }));
}

/** Labels as they are typed, one a line. */
export function labelsOf(text: string): string[] {
  return [...new Set(text.split("\n").map((label) => label.trim()))].filter((label) => label !== "");
}

/** Metadata as they are typed. Raises an error that says what they have to be. */
export function metadataOf(text: string): Record<string, unknown> {
  let read: unknown;
  try {
    read = text.trim() === "" ? {} : JSON.parse(text);
  } catch (error) {
    throw new Error(`The metadata is not valid JSON: ${error instanceof Error ? error.message : error}`);
  }
  if (typeof read !== "object" || read === null || Array.isArray(read)) {
    throw new Error('The metadata is not a JSON object: write {"key": "value"}.');
  }
  return read as Record<string, unknown>;
}
