import { expect, it } from 'vitest';
import { age, durationOf, gibibytes, logLine, plain, secondsOf, table } from '../../../src/cli/text.ts';

it('a table aligns its columns, and no cell can move the cursor or turn the text around', () => {
  const rows = [
    ['i-1', 'a\u001b[2Jb\n', ''],
    ['i-22', '\u202ex', 'z'],
  ];
  expect(table(['ID', 'NAME', 'NOTE'], rows)).toBe('ID    NAME     NOTE\ni-1   a?[2Jb?  -\ni-22  ?x       z\n');
  expect(plain('é漢')).toBe('é漢');
});

it('a line of a log keeps its colours and loses all else that is no text', () => {
  expect(logLine('\u001b[31mred\u001b[0m\tx\u001b]0;title\u0007\u001b[2J\r')).toBe(
    '\u001b[31mred\u001b[0m\tx?]0;title??[2J?',
  );
});

it('durations are read and written', () => {
  expect(['90s', '10m', '1h30m', '2h', '', 'h', '1d', '1m1h'].map(secondsOf)).toEqual([
    90,
    600,
    5400,
    7200,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  expect([90, 5400, 36_000, 0].map(durationOf)).toEqual(['1m30s', '1h30m', '10h', '0s']);
});

it('ages and memory are in the units of people', () => {
  const now = Date.parse('2026-01-03T00:00:00Z');
  const ages = ['2026-01-02T23:59:20Z', '2026-01-02T23:48:00Z', '2026-01-02T19:00:00Z', '2025-12-31T00:00:00Z'];
  expect(ages.map((from) => age(from, now))).toEqual(['40s', '12m', '5h', '3d']);
  expect([81559, 23034].map(gibibytes)).toEqual(['80 GiB', '22 GiB']);
});
