import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { waitFor } from '../../support/wait-for.ts';

const PROGRAM = fileURLToPath(new URL('../../support/logging-program.ts', import.meta.url));
const LINES = 5_000;

function run(lines: number, end: string) {
  const child = spawn(process.execPath, [PROGRAM, String(lines), end], { stdio: ['pipe', 'pipe', 'pipe'] });
  return { child, exited: once(child, 'exit'), errors: text(child.stderr) };
}

function indexesOf(log: string): unknown[] {
  const lines = log.split('\n').slice(0, -1);
  return lines.map((line) => (JSON.parse(line) as { index?: number; msg: string }).index);
}

const ALL = Array.from({ length: LINES }, (_, index) => index);

it.each(['return', 'throw'])('no line is lost when a process ends by %s', async (end) => {
  const { child } = run(LINES, end);
  expect(indexesOf(await text(child.stdout))).toEqual(ALL);
});

it('a line is written soon, though nothing follows it', async () => {
  const { child, exited } = run(1, 'wait');
  let log = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => (log += part));
  await waitFor('the line', () => log.endsWith('\n'));
  expect(indexesOf(log)).toEqual([0]);
  child.stdin.end();
  await exited;
});

it('a reader that stands still holds nothing up: what is too much is dropped and counted', async () => {
  // 15 MB, of which a pipe holds 64 KiB.
  const { child, exited, errors } = run(60_000, 'wait');
  child.stdin.end();
  // The program comes to its end while nobody reads.
  await once(child.stderr, 'data');
  const written = indexesOf(await text(child.stdout));
  await exited;
  const dropped = Number(/^berth_log_lines_dropped_total (\d+)$/m.exec(await errors)?.[1]);
  expect(dropped).toBeGreaterThan(40_000);
  // The last line came too late as well, or stands at the end.
  expect(written.length + dropped).toBe(60_001);
  expect(written.slice(0, 1000)).toEqual(ALL.slice(0, 1000));
});
