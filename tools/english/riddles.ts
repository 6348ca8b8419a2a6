/** A place in a text that breaks the rule of CONTRIBUTING.md. */
export interface Riddle {
  /** From 0, in the text. */
  readonly at: number;
  readonly found: string;
  readonly instead: string;
}

interface Rule {
  readonly pattern: RegExp;
  readonly instead: string;
}

const BEGIN_OTHERWISE = 'begin with the reader or the part that acts, and put a condition first with "if" or "when"';

/** A capital letter shows where a sentence begins. A question may begin with Who or What. */
const RULES: readonly Rule[] = [
  { pattern: /(?<![-\w])(?:Of|That|Without|Beside)(?=\s)/g, instead: BEGIN_OTHERWISE },
  { pattern: /(?<![-\w])(?:Who|What)(?=\s)(?!(?:[^.!|\n]|\n(?!\n))*\?)/g, instead: BEGIN_OTHERWISE },
  { pattern: /(?<!\b(?:leaves?|left|let|stands?) (?:\w+ ){0,3})\balone\b/gi, instead: '"only"' },
  { pattern: /\bbeside\b/g, instead: '"next to", "with" or "besides"' },
  { pattern: /\b(?:go|goes|going|went|gone) on\b/gi, instead: '"continue", "keep running" or "follow"' },
  { pattern: /\bwhoever\b/gi, instead: '"anyone who", or name the reader' },
  { pattern: /\bwhom\b/gi, instead: 'a sentence that begins with the one who acts' },
  { pattern: /\bsomebody\b/gi, instead: '"someone", or name who it is' },
  { pattern: /\bmend(?:s|ed|ing)?\b/gi, instead: '"fix" or "repair"' },
];

export function riddles(text: string): Riddle[] {
  const found = RULES.flatMap(({ pattern, instead }) =>
    [...text.matchAll(pattern)].map((match) => ({ at: match.index, found: match[0], instead })),
  );
  return found.toSorted((a, b) => a.at - b.at);
}
