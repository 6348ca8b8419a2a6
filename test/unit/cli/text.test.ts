import { expect, it } from 'vitest';
import { mintToken } from '../../../src/resources/api-key.ts';
import { age, durationOf, gibibytes, logLine, plain, secondsOf, table, withoutTokens } from '../../../src/cli/text.ts';

it('a table aligns its columns, and no cell can move the cursor or turn the text around', () => {
  const rows = [
    ['i-1', 'a\u001b[2Jb\n', ''],
    ['i-22', '\u202ex', 'z'],
  ];
  expect(table(['ID', 'NAME', 'NOTE'], rows)).toBe('ID    NAME    NOTE\ni-1   a?[2Jb  -\ni-22  ?x      z\n');
  expect(plain('é漢')).toBe('é漢');
});

it('on a narrow screen a table leaves out columns, then cuts cells, and never the first; elsewhere it is whole', () => {
  const titles = ['ID', 'GPU', 'AGE', 'IMAGE'];
  const rows = [['i-vdw3lh5adrq5gxhjcqda', '1 x NVIDIA-H100-80GB-HBM3', '40s', 'pytorch/pytorch:latest']];
  const optional = ['IMAGE', 'AGE'];
  const shown = (width?: number): string[] => table(titles, rows, { width, optional }).split('\n');
  expect(shown()).toEqual(table(titles, rows).split('\n'));
  expect(shown(80)).toEqual(shown());
  expect(shown(60)[1]).toBe('i-vdw3lh5adrq5gxhjcqda  1 x NVIDIA-H100-80GB-HBM3  40s');
  expect(shown(50)[1]).toBe('i-vdw3lh5adrq5gxhjcqda  1 x NVIDIA-H100-80GB-HBM3');
  expect(shown(40)).toEqual(['ID                      GPU', 'i-vdw3lh5adrq5gxhjcqda  1 x NVIDIA-H100\u2026', '']);
  // Less would say nothing.
  expect(shown(10)[1]).toBe('i-vdw3lh5adrq5gxhjcqda  1 x NVIDI\u2026');
});

it('no token is said, wherever it came from', () => {
  const { token } = mintToken();
  expect(withoutTokens(`There is no command berth ${token}.`)).toBe('There is no command berth berth_***.');
  expect(withoutTokens(`${token},${token}`)).toBe('berth_***,berth_***');
  const words = 'berth_instance_gpu_utilization_ratio of berth_client';
  expect(withoutTokens(words)).toBe(words);
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
    3660,
  ]);
  expect([90, 5400, 36_000, 0].map(durationOf)).toEqual(['1m30s', '1h30m', '10h', '0s']);
});

it('ages and memory are in the units of people', () => {
  const now = Date.parse('2026-01-03T00:00:00Z');
  const ages = ['2026-01-02T23:59:20Z', '2026-01-02T23:48:00Z', '2026-01-02T19:00:00Z', '2025-12-31T00:00:00Z'];
  expect(ages.map((from) => age(from, now))).toEqual(['40s', '12m', '5h', '3d']);
  expect([81559, 23034].map(gibibytes)).toEqual(['80 GiB', '22 GiB']);
});
