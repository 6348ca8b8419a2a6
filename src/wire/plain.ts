/** A text of somebody else for a terminal: nothing in it moves the cursor or turns the direction of what follows. */
export function plain(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Bidi_Control}]/gu, '?');
}

/**
 * A value as JSON that may also be shown on a terminal: JSON.stringify leaves the controls from U+007F to U+009F as they
 * are, which some terminals obey. Escaped they are the same to every reader of JSON.
 */
export function plainJson(value: unknown, indent?: number): string {
  const escaped = (one: string): string => String.raw`\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value, undefined, indent).replaceAll(/[\u007f-\u009f\p{Bidi_Control}]/gu, escaped);
}
