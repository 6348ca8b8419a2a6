/** A word of a shell command: what a tenant wrote must stay one word, and run nothing. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
