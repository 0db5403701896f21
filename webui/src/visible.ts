/** Text in which nothing is hidden: what has no shape of its own, or turns around what stands beside it, is shown as a sign. Pure. */

const HIDDEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is shown.
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: each of them stands alone.
  /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\u{e0000}-\u{e007f}]/gu;

export function visible(text: string): string {
  return text.replace(HIDDEN, (character) => {
    const code = character.codePointAt(0) ?? 0;
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return code === 0x7f ? "\u2421" : `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
  });
}
