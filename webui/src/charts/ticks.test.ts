import { expect, test } from "vitest";
import { clockTicks, elapsedAt, elapsedTicks, type Room, type Tick, type Ticks } from "./ticks";

/** Seven pixels a character, wider than most are. */
const roomOf = (width: number): Room => ({ width, measure: (text) => text.length * 7 });
const texts = (ticks: Tick[]) => ticks.map(({ text }) => text);
const elapsed = (low: number, high: number, width = 400) => texts(elapsedTicks(low, high, roomOf(width)));
const clock = (low: string, high: string, width = 400, east = 0) =>
  texts(clockTicks(east)(Date.parse(low) / 1000, Date.parse(high) / 1000, roomOf(width)));

test("the unit is that of the span", () => {
  expect(elapsed(0, 0.0004)).toEqual(["0", "100 µs", "200 µs", "300 µs", "400 µs"]);
  expect(elapsed(0, 0.01)).toEqual(["0", "2 ms", "4 ms", "6 ms", "8 ms", "10 ms"]);
  expect(elapsed(0, 10)).toEqual(["0", "2 s", "4 s", "6 s", "8 s", "10 s"]);
  expect(elapsed(0, 3 * 60)).toEqual(["0", "30 s", "1 m", "1 m 30 s", "2 m", "2 m 30 s", "3 m"]);
  expect(elapsed(0, 5 * 3600)).toEqual(["0", "1 h", "2 h", "3 h", "4 h", "5 h"]);
  expect(elapsed(0, 40 * 86400, 230)).toEqual(["0", "10 d", "20 d", "30 d", "40 d"]);
});

test("what all ticks have in common stands before the first one alone", () => {
  expect(elapsed(7200.0215, 7200.0305)).toEqual(["2 h + 22 ms", "+24 ms", "+26 ms", "+28 ms", "+30 ms"]);
  expect(elapsed(7200, 7200.01)).toEqual(["2 h", "+2 ms", "+4 ms", "+6 ms", "+8 ms", "+10 ms"]);
  // An hour that changes is said by each.
  expect(elapsed(3500, 3800)).toEqual(["59 m", "1 h", "1 h 1 m", "1 h 2 m", "1 h 3 m"]);
});

test("clocks that disagree make times before the beginning", () => {
  expect(elapsed(-2, 2)).toEqual(["−2 s", "−1 s", "0", "1 s", "2 s"]);
});

test("a clock has the digits that its step needs, and a new day says which", () => {
  expect(clock("2026-11-25T14:00:00Z", "2026-11-25T14:20:00Z")).toEqual(["14:00", "14:05", "14:10", "14:15", "14:20"]);
  expect(clock("2026-11-25T14:05:10.021Z", "2026-11-25T14:05:10.031Z")).toEqual([
    "14:05:10.022",
    ".024",
    ".026",
    ".028",
    ".030",
  ]);
  expect(clock("2026-11-25T14:05:10Z", "2026-11-25T14:05:40Z", 300)).toEqual(["14:05:10", "14:05:20", "14:05:30"]);
  expect(clock("2026-11-25T18:00:00Z", "2026-11-26T06:00:00Z", 280)).toEqual([
    "18:00",
    "21:00",
    "26 Nov",
    "03:00",
    "06:00",
  ]);
  expect(clock("2026-11-20T00:00:00Z", "2026-11-28T00:00:00Z")).toEqual(["21 Nov", "23 Nov", "25 Nov", "27 Nov"]);
});

test("hours of a day are those of whoever looks", () => {
  expect(clock("2026-11-25T00:30:00Z", "2026-11-25T03:30:00Z", 230, 330)).toEqual(["06:00", "07:00", "08:00", "09:00"]);
});

test("no two texts overlap, none says what the one before says, and there are some, whatever is shown", () => {
  const began = 1_795_000_000;
  const kinds: [Ticks, number[]][] = [
    [elapsedTicks, [0, 0.3, 59.9, 7200.022, 86_399.5, 31_536_000]],
    [clockTicks(-90), [began, began + 0.4, began + 86_399]],
  ];
  for (const [ticks, starts] of kinds) {
    for (const low of starts) {
      for (let span = 2e-5; span < 1e8; span *= 1.7) {
        for (const width of [230, 400, 1100]) {
          const room = roomOf(width);
          const made = ticks(low, low + span, room);
          const across = (tick: Tick) => ((tick.at - low) / span) * width;
          const about = `${low} + ${span} in ${width}: ${texts(made)}`;
          expect(made.length, about).toBeGreaterThan(0);
          expect(made.length, about).toBeLessThanOrEqual(width / 50 + 1.01);
          made.slice(1).forEach((tick, place) => {
            const before = made[place] as Tick;
            expect(tick.text, about).not.toBe(before.text);
            const halves = (room.measure(before.text) + room.measure(tick.text)) / 2;
            expect(across(tick) - across(before), about).toBeGreaterThan(halves);
          });
        }
      }
    }
  }
});

test("what the pointer is on is said to a thousandth of what is shown", () => {
  expect(elapsedAt(7200.0224, 0.01)).toBe("2 h 22 ms 400 µs");
  expect(elapsedAt(7200.0224, 5)).toBe("2 h 22 ms");
  expect(elapsedAt(7325, 36_000)).toBe("2 h 2 m 5 s");
  expect(elapsedAt(0, 0)).toBe("0");
});
