/**
 * What a terminal obeys or does not show: controls, other ends of lines, and what is drawn as nothing or turns the
 * direction. Joiners and variations stay behind what other scripts and emoji need them for; behind ASCII they only make
 * one name look like another.
 */
const HIDDEN =
  /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]|(?![\u200c\u200d\p{Variation_Selector}])\p{Default_Ignorable_Code_Point}|(?<![^\0-\x7f\u200c\u200d])[\u200c\u200d]|(?<![^\0-\x7f\u200c\u200d\p{Variation_Selector}])\p{Variation_Selector}(?!\u20e3)/gu;

/** A text of somebody else for a terminal: nothing in it moves the cursor, turns the direction of what follows, or hides. */
export function plain(text: string): string {
  return text.replaceAll(HIDDEN, '?');
}

/** In the escapes of JSON, one for each unit of UTF-16. */
function escaped(text: string): string {
  return text.replaceAll(/[^]/g, (unit) => String.raw`\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * A value as JSON that may also be shown on a terminal: JSON.stringify leaves all of {@link HIDDEN} behind U+001F as it is.
 * Escaped it is the same to every reader of JSON.
 */
export function plainJson(value: unknown, indent?: number): string {
  // Its own line breaks stay.
  return JSON.stringify(value, undefined, indent).replaceAll(HIDDEN, (found) => (found < ' ' ? found : escaped(found)));
}
