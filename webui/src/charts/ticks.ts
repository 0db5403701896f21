/**
 * Ticks of an axis of time: as close as their texts allow, which never overlap, and never with more digits than tell one
 * tick from the next. What all of them have in common stands before the first one alone. Pure, but for `ticked`.
 */

import type uPlot from "uplot";

export interface Tick {
  /** Seconds. */
  at: number;
  text: string;
}

/** What an axis has room for. */
export interface Room {
  /** Pixels, from the lowest place to the highest. */
  width: number;
  /** Of a text, in pixels. */
  measure: (text: string) => number;
}

/** Between two places in seconds. */
export type Ticks = (low: number, high: number, room: Room) => Tick[];

/** Pixels: between two ticks, between two texts, and how far a text may stand out before and behind the axis. */
const [NEAREST, GAP, BEFORE, BEHIND] = [50, 10, 30, 24];

/** In microseconds: whole numbers of them have no remainders that show. */
const UNITS = [
  { unit: "µs", size: 1 },
  { unit: "ms", size: 1e3 },
  { unit: "s", size: 1e6 },
  { unit: "m", size: 6e7 },
  { unit: "h", size: 3.6e9 },
  { unit: "d", size: 8.64e10 },
] as const;
const [SECOND, MINUTE, DAY] = [1e6, 6e7, 8.64e10];
const THOUSANDS = [1, 2, 5, 10, 20, 50, 100, 200, 500];
const SIXTIES = [1, 2, 5, 10, 15, 30];
const MULTIPLES = [THOUSANDS, THOUSANDS, SIXTIES, SIXTIES, [1, 2, 3, 6, 12], [...THOUSANDS, 1000, 2000, 5000, 10_000]];
const STEPS = UNITS.flatMap(({ size }, place) => (MULTIPLES[place] ?? []).map((multiple) => multiple * size));

/** Of the time since something began: `30 s`, `1 m`, `1 m 30 s`; amid milliseconds `2 h + 4 ms`, `+6 ms`. */
export const elapsedTicks: Ticks = (low, high, room) =>
  closest(Math.ceil(low * SECOND), Math.floor(high * SECOND), low * SECOND, high * SECOND, room, elapsedTexts).map(
    ({ at, text }) => ({ at: at / SECOND, text }),
  );

/** Of moments in seconds since 1970, as a clock shows them that many minutes east of UTC: `14:05`, `14:05:10.022`, `.024`. */
export function clockTicks(east: number): Ticks {
  const shift = east * MINUTE;
  return (low, high, room) => {
    const [from, to] = [low * SECOND + shift, high * SECOND + shift];
    return closest(Math.ceil(from), Math.floor(to), from, to, room, clockTexts).map(({ at, text }) => ({
      at: (at - shift) / SECOND,
      text,
    }));
  };
}

/** Seconds since something began, to a thousandth of what is shown around them. */
export function elapsedAt(seconds: number, shown: number): string {
  const size = (Math.abs(shown) * SECOND) / 1000;
  const finest = Math.max(
    0,
    UNITS.findLastIndex((each) => each.size <= size),
  );
  return inUnits(Math.round(seconds * SECOND), UNITS.length - 1, finest);
}

/** How uPlot has them on an axis. */
export function ticked(ticks: Ticks): Pick<uPlot.Axis, "splits" | "values"> {
  let texts = new Map<number, string>();
  return {
    splits: (plot, axis, low, high) => {
      const { ctx } = plot;
      ctx.font = String(plot.axes[axis]?.font?.[0] ?? "11px sans-serif");
      const scale = Number.parseFloat(ctx.font) / 11;
      const width = plot.bbox.width / scale || plot.width;
      const made = ticks(low, high, { width, measure: (text) => ctx.measureText(text).width / scale });
      texts = new Map(made.map(({ at, text }) => [at, text]));
      return made.map(({ at }) => at);
    },
    values: (_, places) => places.map((at) => texts.get(at) ?? ""),
  };
}

/** The texts of ticks at these places, which are multiples of a step. */
type Texts = (places: readonly number[], step: number) => string[];

/** Those of the least step whose texts have room; where no two have, one alone. */
function closest(first: number, last: number, low: number, high: number, room: Room, texts: Texts): Tick[] {
  const across = (at: number) => (high > low ? ((at - low) / (high - low)) * room.width : room.width / 2);
  const fits = (at: number, text: string) => {
    const half = room.measure(text) / 2;
    return across(at) - half >= -BEFORE && across(at) + half <= room.width + BEHIND;
  };
  const apart = (tick: Tick, before: Tick) =>
    across(tick.at) - across(before.at) >= (room.measure(before.text) + room.measure(tick.text)) / 2 + GAP;
  let alone: Tick[] = [];
  for (const step of STEPS) {
    if (high > low && (step / (high - low)) * room.width < NEAREST) continue;
    const places = multiples(first, last, step);
    const made = within(places, step, texts, fits);
    const isRoom = made.slice(1).every((tick, place) => apart(tick, made[place] as Tick));
    if (made.length > 0 && isRoom) return made;
    for (const at of places) if (alone.length === 0) alone = within([at], step, texts, fits);
  }
  return alone;
}

/** Without those that would be cut; what the first one says depends on which one it is. */
function within(places: number[], step: number, texts: Texts, fits: (at: number, text: string) => boolean): Tick[] {
  const written = texts(places, step);
  const kept = places.filter((at, place) => fits(at, written[place] ?? ""));
  if (kept.length < places.length) return within(kept, step, texts, fits);
  return places.map((at, place) => ({ at, text: written[place] ?? "" }));
}

function multiples(first: number, last: number, step: number): number[] {
  const from = Math.ceil(first / step);
  const count = Math.max(0, Math.floor(last / step) - from + 1);
  return Array.from({ length: count }, (_, place) => (from + place) * step);
}

function finestOf(step: number): number {
  return UNITS.findLastIndex(({ size }) => size <= step);
}

function elapsedTexts(places: readonly number[], step: number): string[] {
  const [first, last] = [places[0] ?? 0, places.at(-1) ?? 0];
  const finest = finestOf(step);
  // The greatest unit that is not the same for all of them.
  let greatest = finest;
  while (first >= 0 && whole(first, greatest + 1) !== whole(last, greatest + 1)) greatest += 1;
  const common = first >= 0 ? whole(first, greatest + 1) : 0;
  if (common === 0) return places.map((at) => inUnits(at, UNITS.length - 1, finest));
  const before = inUnits(common, UNITS.length - 1, greatest + 1);
  return places.map((at, place) => {
    const rest = inUnits(at - common, greatest, finest);
    if (place > 0) return `+${rest}`;
    return at === common ? before : `${before} + ${rest}`;
  });
}

/** As much of it as is whole in a unit. */
function whole(value: number, place: number): number {
  const size = UNITS[place]?.size;
  return size === undefined ? 0 : Math.floor(value / size) * size;
}

/** `1 h 30 m`: from one unit down to another, without those of which it has none. */
function inUnits(value: number, greatest: number, finest: number): string {
  let rest = Math.abs(value);
  const parts: string[] = [];
  for (let place = greatest; place >= finest; place -= 1) {
    const { unit, size } = UNITS[place] as (typeof UNITS)[number];
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count} ${unit}`);
  }
  if (parts.length === 0) return "0";
  return (value < 0 ? "−" : "") + parts.join(" ");
}

function clockTexts(places: readonly number[], step: number): string[] {
  return places.map((at, place) => {
    const before = places[place - 1];
    const iso = new Date(Math.floor(at / 1000)).toISOString();
    const date = `${Number(iso.slice(8, 10))} ${MONTHS[Number(iso.slice(5, 7)) - 1]}`;
    if (step >= DAY) return date;
    const isNewDay = before !== undefined && Math.floor(before / DAY) !== Math.floor(at / DAY);
    if (isNewDay && at % DAY === 0) return date;
    const day = isNewDay ? `${date} ` : "";
    if (step >= MINUTE) return day + iso.slice(11, 16);
    if (step >= SECOND) return day + iso.slice(11, 19);
    // No more digits of a second than the step has.
    const part = String(at % SECOND)
      .padStart(6, "0")
      .slice(0, 6 - Math.floor(Math.log10(step)));
    const isSameSecond = before !== undefined && Math.floor(before / SECOND) === Math.floor(at / SECOND);
    return isSameSecond ? `.${part}` : `${day}${iso.slice(11, 19)}.${part}`;
  });
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
