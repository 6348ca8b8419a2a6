import { plain as plainText } from '../wire/plain.ts';
import { fitted, widthOf, wrapped } from './width.ts';

/** A text of somebody else in one line for a terminal: nothing in it moves the cursor or turns the direction of what follows. */
export function plain(text: string): string {
  return plainText(text.replaceAll(/[\r\n]+/g, ' ').trim());
}

// Control characters but for tabs and the sequences that only colour text (ECMA-48, select graphic rendition).
// oxlint-disable-next-line no-control-regex
const LINE = /\u001b\[[0-9;]*m|[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/g;

/** A line of a log for a terminal: colours stay, all else that would move the cursor or set a title goes. */
export function logLine(text: string): string {
  return text.replaceAll(LINE, (found) => (found.endsWith('m') && found.length > 1 ? found : '?'));
}

/** A token of an API key: what is said to people has none, whatever they typed or a server wrote. */
const TOKEN = /berth_[A-Za-z0-9_-]{40,}/g;

/** The text with its tokens made unreadable. */
export function withoutTokens(text: string): string {
  return text.replaceAll(TOKEN, 'berth_***');
}

/** How a table fits into a screen. */
export interface Fit {
  /** Columns of the screen; undefined for an output that is none, where a table is whole. */
  width: number | undefined;
  /** Titles of the columns that may be left out, the first one first. */
  optional: readonly string[];
  /** Titles of the columns that are cut last. */
  kept?: readonly string[];
  /** Where the last column has sentences, the least width of it: they go on in lines below rather than being cut. */
  sentences?: number;
  /** Widths of columns, by their titles, that hold what lines to come may have. */
  least?: Readonly<Record<string, number>>;
  /** How a cell is drawn: the number of its colour (ECMA-48, select graphic rendition). */
  paint?: (title: string, cell: string) => number | undefined;
}

/** Columns of the screen that a cell keeps of itself. */
const LEAST = 10;
/** Columns in which a sentence can be read. */
const LEAST_SENTENCE = 24;
const GAP = '  ';

function widthsOf(lines: readonly (readonly string[])[], { least = {} }: Fit): number[] {
  return (lines[0] ?? []).map((title, column) =>
    Math.max(least[title] ?? 0, ...lines.map((line) => widthOf(line[column] ?? ''))),
  );
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
const lengthOf = (widths: readonly number[]): number => sum(widths) + GAP.length * (widths.length - 1);

/** The widths with that of the sentences at the least at which they can be read. */
const withSentences = (widths: number[], { sentences = Infinity }: Fit): number[] =>
  widths.map((width, column) => (column === widths.length - 1 ? Math.min(width, sentences) : width));

/** The lines without the columns that must go, so that the rest fits. */
function dropped(lines: readonly (readonly string[])[], fit: Fit) {
  let shown = lines;
  for (const title of fit.optional) {
    if (lengthOf(withSentences(widthsOf(shown, fit), fit)) <= (fit.width ?? Infinity)) break;
    const column = shown[0]?.indexOf(title) ?? -1;
    if (column >= 0) shown = shown.map((line) => line.filter((_, index) => index !== column));
  }
  return shown;
}

/** The widths of the columns, the widest ones narrowed. The first stays: it names what other commands take. */
function narrowed(lines: readonly (readonly string[])[], fit: Fit): number[] {
  const { width = Infinity, kept = [], sentences } = fit;
  const widths = widthsOf(lines, fit);
  const whole = widths.at(-1) ?? 0;
  const columns = widths.map((_, column) => column).slice(1, sentences === undefined ? undefined : -1);
  if (sentences !== undefined) {
    const rest = width - lengthOf(widths.slice(0, -1)) - GAP.length;
    widths.splice(-1, 1, Math.max(Math.min(sentences, whole), Math.min(whole, rest)));
  }
  const isKept = (column: number): boolean => kept.includes(lines[0]?.[column] ?? '');
  for (const group of [columns.filter((column) => !isKept(column)), columns.filter(isKept)]) {
    while (lengthOf(widths) > width) {
      const widest = group.toSorted((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0) || b - a)[0];
      if (widest === undefined || (widths[widest] ?? 0) <= LEAST) break;
      widths[widest] = (widths[widest] ?? 0) - 1;
    }
  }
  return widths;
}

/** Aligned columns below their titles. Cells are made plain. On a screen that is too narrow, columns go and cells are cut. */
export function table(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  fit: Fit = { width: undefined, optional: [] },
): string {
  const lines = dropped([titles, ...rows.map((row) => row.map((cell) => plain(cell) || '-'))], fit);
  const widths = narrowed(lines, fit);
  const draw = (cell: string, column: number, isTitle: boolean): string => {
    const colour = isTitle ? undefined : fit.paint?.(lines[0]?.[column] ?? '', cell);
    const text = fitted(cell, widths[column] ?? 0);
    const words = text.trimEnd();
    return colour === undefined ? text : painted(words, colour) + text.slice(words.length);
  };
  const row = (line: readonly string[], isTitle: boolean): string =>
    `${line
      .map((cell, column) => draw(cell, column, isTitle))
      .join(GAP)
      .trimEnd()}\n`;
  if (fit.sentences === undefined || fit.width === undefined)
    return lines.map((line, index) => row(line, index === 0)).join('');
  const indent = ' '.repeat(lengthOf(widths.slice(0, -1)) + GAP.length);
  return lines
    .map((line, index) => {
      const [first = '', ...more] = wrapped(line.at(-1) ?? '', widths.at(-1) ?? 0);
      const head = line.slice(0, -1).map((cell, column) => draw(cell, column, index === 0));
      return [[...head, first].join(GAP), ...more.map((text) => `${indent}${text}`)].map((one) => `${one}\n`).join('');
    })
    .join('');
}

/** The text in a colour. */
export function painted(text: string, colour: number): string {
  return `\u001b[${colour}m${text}\u001b[0m`;
}

/** Lines of a name and a value, which goes on in lines below where the screen ends; those without a value are left out. */
export function pairs(
  entries: readonly (readonly [name: string, value: string | undefined, colour?: number])[],
  width = Infinity,
): string {
  const shown = entries.filter(([, value]) => value !== undefined && value !== '');
  const left = Math.max(0, ...shown.map(([name]) => name.length));
  const indent = ' '.repeat(left + GAP.length);
  const room = Math.max(LEAST_SENTENCE, width - indent.length);
  return shown
    .map(([name, value = '', colour]) => {
      const lines = wrapped(plain(value), room).map((line) => (colour === undefined ? line : painted(line, colour)));
      return `${name.padEnd(left)}${GAP}${lines.join(`\n${indent}`)}\n`;
    })
    .join('');
}

/** Time since `from`, in the largest unit that fits: 40s, 12m, 5h, 3d. */
export function age(from: string, now: number): string {
  const seconds = Math.max(0, Math.floor((now - Date.parse(from)) / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`;
}

/** MiB as GiB: an H100 with 80 GB on its data sheet has 81559 MiB and shows 80. */
export function gibibytes(mib: number): string {
  return `${Math.round(mib / 1024)} GiB`;
}

const DURATION = /^(?:\d+(?:\.\d+)?[hms])+$/;
const UNITS: Readonly<Record<string, number>> = { h: 3600, m: 60, s: 1 };

/** The seconds, rounded up, of 90s, 10m, 1.5h or 1h30m, as the server takes them; undefined for other text. */
export function secondsOf(text: string): number | undefined {
  if (!DURATION.test(text)) return undefined;
  const parts = [...text.matchAll(/([\d.]+)([hms])/gy)].map(
    ([, count, unit = '']) => Number(count) * (UNITS[unit] ?? 0),
  );
  return Math.ceil(sum(parts));
}

/** Seconds as 1h30m. */
export function durationOf(seconds: number): string {
  const parts = [`${Math.floor(seconds / 3600)}h`, `${Math.floor((seconds % 3600) / 60)}m`, `${seconds % 60}s`];
  return parts.filter((part) => !part.startsWith('0')).join('') || '0s';
}
