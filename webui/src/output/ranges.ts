/** Numbers of lines as ranges of neighbours, in order: how many there are, the n-th, and which place a number has. */

export class Ranges {
  private readonly first: number[] = [];
  private readonly last: number[] = [];
  /** How many numbers stand before each range. */
  private readonly before: number[] = [];
  count = 0;

  /** More ranges, behind those that are here. */
  add(first: number[], last: number[]): void {
    first.forEach((start, at) => {
      const end = last[at] ?? start;
      this.first.push(start);
      this.last.push(end);
      this.before.push(this.count);
      this.count += end - start + 1;
    });
  }

  /** The number at a place; undefined beyond the end. */
  at(place: number): number | undefined {
    if (place < 0 || place >= this.count) return undefined;
    const range = lastUpTo(this.before, place);
    return (this.first[range] ?? 0) + place - (this.before[range] ?? 0);
  }

  /** How many numbers are less than `number`: its place, if it is one of them. */
  below(number: number): number {
    const range = lastUpTo(this.first, number);
    if (range < 0) return 0;
    const inside = Math.min(number - (this.first[range] ?? 0), (this.last[range] ?? 0) - (this.first[range] ?? 0) + 1);
    return (this.before[range] ?? 0) + inside;
  }

  has(number: number): boolean {
    const range = lastUpTo(this.first, number);
    return range >= 0 && number <= (this.last[range] ?? -1);
  }
}

/** The last place whose value is not more than `value`; -1: there is none. */
function lastUpTo(values: number[], value: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((values[middle] ?? 0) <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
