/** Orders by several columns, as they stand in an address: `-validation.loss.last,name`. Pure. */

export interface Sort {
  column: string;
  descending: boolean;
}

/** By more nobody sorts; rows that are equal in all of them stand by number. */
export const MAX_SORTS = 5;

/** A column stands once, where it is first. */
export function sortsOf(text: string): Sort[] {
  const sorts: Sort[] = [];
  for (const part of text.split(",")) {
    const column = part.replace(/^-/, "");
    if (column && !sorts.some((each) => each.column === column)) sorts.push({ column, descending: part[0] === "-" });
  }
  return sorts.slice(0, MAX_SORTS);
}

export function writtenSorts(sorts: readonly Sort[]): string {
  return sorts.map(({ column, descending }) => (descending ? "-" : "") + column).join(",");
}

/** After a click on a heading: by it alone; `beside`: after the others, falling, then rising, then no more. */
export function clicked(text: string, column: string, beside: boolean): string {
  const sorts = sortsOf(text);
  const now = sorts.find((each) => each.column === column);
  if (!beside) return sorts.length === 1 && now?.descending ? column : `-${column}`;
  const next = !now
    ? [...sorts, { column, descending: true }].slice(-MAX_SORTS)
    : now.descending
      ? sorts.map((each) => (each === now ? { column, descending: false } : each))
      : sorts.filter((each) => each !== now);
  return writtenSorts(next.length > 0 ? next : [{ column, descending: true }]);
}

/** The order as the master reads it; numbers make it whole. */
export function sortText(text: string): string {
  const sorts = sortsOf(text).map(({ column, descending }) => `${column}=${descending ? "desc" : "asc"}`);
  return [...sorts, ...(sortsOf(text).some((each) => each.column === "id") ? [] : ["id=desc"])].join(",");
}
