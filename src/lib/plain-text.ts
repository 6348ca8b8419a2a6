/** A text of somebody else for a terminal, which must take nothing in it for a command. */
export function plainText(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, '?');
}
