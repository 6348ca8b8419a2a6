/** Edits between two words: a letter more, less or other, or two that changed places (optimal string alignment). */
function distance(from: string, to: string): number {
  let [before, row]: number[][] = [[], Array.from({ length: to.length + 1 }, (_, index) => index)];
  for (let at = 1; at <= from.length; at += 1) {
    const next = [at];
    for (let other = 1; other <= to.length; other += 1) {
      const isSame = from[at - 1] === to[other - 1];
      const edits = [(row?.[other] ?? 0) + 1, (next[other - 1] ?? 0) + 1, (row?.[other - 1] ?? 0) + (isSame ? 0 : 1)];
      if (at > 1 && other > 1 && from[at - 1] === to[other - 2] && from[at - 2] === to[other - 1])
        edits.push((before?.[other - 2] ?? 0) + 1);
      next.push(Math.min(...edits));
    }
    [before, row] = [row, next];
  }
  return row?.at(-1) ?? 0;
}

/** Characters of a word that is compared. */
const LONGEST = 64;

/** The word that somebody may have meant, when one is near: an edit for every three letters, or the beginning of one word alone. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const [wanted, words] = [word.toLowerCase(), [...new Set(known)].filter(({ length }) => length <= LONGEST)];
  if (wanted === '' || wanted.length > LONGEST) return undefined;
  const begun = words.filter((one) => wanted.length > 1 && one.toLowerCase().startsWith(wanted));
  if (begun.length === 1) return begun[0];
  const most = Math.max(1, Math.floor(wanted.length / 3));
  const near = words
    .map((one) => ({ one, edits: distance(wanted, one.toLowerCase()) }))
    .filter(({ edits, one }) => edits <= most && edits < one.length)
    .toSorted((a, b) => a.edits - b.edits);
  return near[0]?.one;
}

/** `Did you mean …?`, or undefined when nothing is near. */
export function didYouMean(
  word: string,
  known: readonly string[],
  write = (one: string): string => one,
): string | undefined {
  const found = nearest(word, known);
  return found === undefined ? undefined : `Did you mean ${write(found)}?`;
}
