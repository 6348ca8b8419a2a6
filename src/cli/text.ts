// Control characters, and those that turn the direction of text: a name of an instance must not draw on the terminal.
// oxlint-disable-next-line no-control-regex
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
// The same, but for tabs and the sequences that only colour text (ECMA-48, select graphic rendition).
// oxlint-disable-next-line no-control-regex
const LINE = /\u001b\[[0-9;]*m|[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/g;

/** Text from the server on one line of a terminal: what is no plain character is shown as a question mark. */
export function plain(text: string): string {
  return text.replaceAll(UNSAFE, '?');
}

/** A line of a log for a terminal: colours stay, all else that would move the cursor or set a title goes. */
export function logLine(text: string): string {
  return text.replaceAll(LINE, (found) => (found.endsWith('m') && found.length > 1 ? found : '?'));
}

/** Aligned columns below their titles. Cells are made plain. */
export function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [titles, ...rows.map((row) => row.map((cell) => plain(cell) || '-'))];
  const widths = titles.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map(
      (line) =>
        `${line
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
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
