/** Configurations as YAML, for reading: keys in their order, text quoted where it could be taken for something else. */

const PLAIN = /^[A-Za-z_./][\w./:@+-]*$/;
const WORDS = /^(?:true|false|null|yes|no|on|off|~)$/i;

export function yaml(value: unknown, indent = ""): string {
  if (Array.isArray(value)) {
    if (value.length === 0) return "[]\n";
    return value.map((item) => `${indent}- ${inner(item, `${indent}  `).replace(/^\s+/, "")}`).join("");
  }
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value);
    if (entries.length === 0) return "{}\n";
    return entries.map(([key, item]) => `${indent}${scalar(key)}:${below(item, indent)}`).join("");
  }
  return `${scalar(value)}\n`;
}

function inner(value: unknown, indent: string): string {
  return yaml(value, indent);
}

function below(value: unknown, indent: string): string {
  const holds = typeof value === "object" && value !== null && Object.keys(value).length > 0;
  return holds ? `\n${yaml(value, `${indent}  `)}` : ` ${yaml(value)}`;
}

function scalar(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value);
  return PLAIN.test(value) && !WORDS.test(value) && !value.endsWith(":") ? value : JSON.stringify(value);
}
