import { plain } from '../wire/plain.ts';

export { plain };

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
}

/** Characters that a cell keeps of itself. */
const LEAST = 10;
const GAP = '  ';

function widthsOf(lines: readonly (readonly string[])[]): number[] {
  return (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
const lengthOf = (widths: readonly number[]): number => sum(widths) + GAP.length * (widths.length - 1);

/** The lines without the columns that must go, so that the rest fits. */
function dropped(lines: readonly (readonly string[])[], { width = Infinity, optional }: Fit) {
  let shown = lines;
  for (const title of optional) {
    if (lengthOf(widthsOf(shown)) <= width) break;
    const column = shown[0]?.indexOf(title) ?? -1;
    if (column >= 0) shown = shown.map((line) => line.toSpliced(column, 1));
  }
  return shown;
}

/** The widths of the columns, the widest ones narrowed. The first stays: it names what other commands take. */
function narrowed(widths: readonly number[], width: number): number[] {
  const fitting = [...widths];
  while (lengthOf(fitting) > width) {
    const widest = Math.max(...fitting.slice(1));
    if (widest <= LEAST) break;
    fitting[fitting.lastIndexOf(widest)] = widest - 1;
  }
  return fitting;
}

function cut(cell: string, width: number): string {
  return cell.length > width ? `${cell.slice(0, width - 1)}\u2026` : cell.padEnd(width);
}

/** Aligned columns below their titles. Cells are made plain. On a screen that is too narrow, columns go and cells are cut. */
export function table(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  fit: Fit = { width: undefined, optional: [] },
): string {
  const lines = dropped([titles, ...rows.map((row) => row.map((cell) => plain(cell) || '-'))], fit);
  const widths = narrowed(widthsOf(lines), fit.width ?? Infinity);
  return lines
    .map(
      (line) =>
        `${line
          .map((cell, column) => cut(cell, widths[column] ?? 0))
          .join(GAP)
          .trimEnd()}\n`,
    )
    .join('');
}

/** Lines of a name and a value; those without a value are left out. */
export function pairs(entries: readonly (readonly [name: string, value: string | undefined])[]): string {
  const shown = entries.filter(([, value]) => value !== undefined && value !== '');
  const width = Math.max(0, ...shown.map(([name]) => name.length));
  return shown.map(([name, value = '']) => `${name.padEnd(width)}  ${plain(value)}\n`).join('');
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

const DURATION = /^(?=\d)(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/;

/** The seconds of 90s, 10m or 1h30m; undefined for other text. */
export function secondsOf(text: string): number | undefined {
  const match = DURATION.exec(text);
  if (match === null) return undefined;
  const [, hours = '0', minutes = '0', seconds = '0'] = match;
  return Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
}

/** Seconds as 1h30m. */
export function durationOf(seconds: number): string {
  const parts = [`${Math.floor(seconds / 3600)}h`, `${Math.floor((seconds % 3600) / 60)}m`, `${seconds % 60}s`];
  return parts.filter((part) => !part.startsWith('0')).join('') || '0s';
}
