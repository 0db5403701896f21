/** Colours of series, at least 3:1 against the surface in each theme, and who has which of them. Pure. */

export type Shade = "light" | "dark";

export const PALETTE: Record<Shade, readonly string[]> = {
  light: ["#0067a3", "#b45f00", "#00785a", "#b0407f", "#c43c00", "#3d7fc4", "#6a4fd8", "#6b6f00", "#8a4b2f", "#4a5a6a"],
  dark: ["#5bb0f0", "#f0a53a", "#35c79a", "#e78cc0", "#ff8a5c", "#8ecbff", "#a99cff", "#c8cc4a", "#d2a08a", "#aab6c4"],
};
/** Whom each colour is taken for in a thin line, in either theme: two blues and a slate, two oranges. */
const FAMILIES = [0, 1, 2, 3, 1, 0, 4, 5, 6, 0];
const KINDS = new Set(FAMILIES).size;
/** Of what stands behind. */
export const GREY: Record<Shade, string> = { light: "#98a0aa", dark: "#5d6873" };
const DASHES: readonly (readonly number[] | undefined)[] = [undefined, [7, 3], [2, 3], [8, 3, 2, 3], [12, 5]];

export interface Look {
  colour: string;
  dash?: number[];
}

/**
 * A look for each trial: its colour is that of its number, and where another has it already, or one that looks like it, the
 * next that is free; those that look alike come once no others are left. Only when all colours are taken are lines dashed, which then have the colours anew. Lower numbers choose first: a later trial
 * changes none of theirs.
 */
export function looksOf(ids: readonly number[], shade: Shade): Map<number, Look> {
  const colours = PALETTE[shade];
  const taken = new Set<number>();
  const looks = new Map<number, Look>();
  for (const id of [...new Set(ids)].sort((a, b) => a - b)) {
    if (taken.size === colours.length) taken.clear();
    let place = id % colours.length;
    const families = new Set([...taken].map((each) => FAMILIES[each]));
    const isFree = (each: number) => !taken.has(each) && (families.size === KINDS || !families.has(FAMILIES[each]));
    while (!isFree(place)) place = (place + 1) % colours.length;
    taken.add(place);
    const dash = DASHES[Math.floor(looks.size / colours.length) % DASHES.length];
    looks.set(id, { colour: colours[place] as string, ...(dash && { dash: [...dash] }) });
  }
  return looks;
}

/** With so much of a colour's strength, of 255. */
export function faint(colour: string, strength = 0x48): string {
  return colour + strength.toString(16).padStart(2, "0");
}

/** From bad to good: what a line of parallel coordinates or a cell is filled with; `share` from 0 to 1. */
export function heat(share: number, shade: Shade): string {
  const [from, to] =
    shade === "light"
      ? [
          [196, 60, 0],
          [0, 103, 163],
        ]
      : [
          [255, 138, 92],
          [91, 176, 240],
        ];
  const bounded = Math.min(1, Math.max(0, share));
  const mixed = [0, 1, 2].map((part) =>
    Math.round((from?.[part] ?? 0) + bounded * ((to?.[part] ?? 0) - (from?.[part] ?? 0))),
  );
  return `rgb(${mixed.join(" ")})`;
}
