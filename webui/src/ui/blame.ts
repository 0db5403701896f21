/** Which field of a form a refusal of the master is about. Pure. */

/** Field -> what of a refusal is about it. */
export type Blame = Record<string, RegExp>;

/** The first whose words occur; undefined: the form as a whole. */
export function blamed(refusal: string, fields: Blame): string | undefined {
  return Object.keys(fields).find((field) => fields[field]?.test(refusal));
}
