/** A text of somebody else for a terminal: nothing in it moves the cursor or turns the direction of what follows. */
export function plain(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Bidi_Control}]/gu, '?');
}
