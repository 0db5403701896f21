/** Whoever goes from a row of a table to something about it and comes back is at that row again, by keyboard, too. */

let standing = 0;
let left: { address: string; row: number } | undefined;

function here(): string {
  return location.pathname + location.search;
}

/** The row in which the keyboard stands now. */
export function stand(row: number): void {
  standing = row;
}

/** Before one goes. */
export function rememberRow(): void {
  left = { address: here(), row: standing };
}

/** The row of this address to which one comes back. */
export function rowToReturnTo(): number | undefined {
  return left?.address === here() ? left.row : undefined;
}

/** Once one is there. */
export function returned(): void {
  left = undefined;
}
