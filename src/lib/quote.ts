/** The text as one word of a POSIX shell: what a tenant wrote stays one word, and runs nothing. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
