import { expect, it } from 'vitest';
import { COSTS_FROM, diskAtStop, disksAtStop, losesFilesAtStop } from '../../../src/web/page/instances/action-words.ts';
import { codeLink } from '../../../src/web/page/instances/code-link.ts';
import { clocks, drawnOf, roundAbove } from '../../../src/web/page/instances/measures.ts';
import { localTimes, plainly, reasonWords } from '../../../src/web/page/parts/words.ts';
import type { InstanceRecord, MetricsRecord } from '../../../src/wire/records.ts';

const GIB = 1024 ** 3;

function series(name: MetricsRecord['data'][number]['name'], values: (number | null)[], gpu: number | null = null) {
  return { name, gpu, values };
}

it('draws what was measured, a line for each GPU, up to what there is', () => {
  const data = [
    series('gpu_utilization_ratio', [0.5, 0.83], 0),
    series('gpu_utilization_ratio', [0.1, null], 1),
    series('gpu_memory_used_bytes', [GIB, 8 * GIB], 0),
    series('gpu_memory_limit_bytes', [null, 48 * GIB], 0),
    series('cpu_cores', [null, 2.25]),
    series('memory_used_bytes', [null, 2.5 * 1024 ** 2]),
    series('disk_used_bytes', [null, null]),
  ];
  expect(drawnOf({ data }).map(({ title, now, top, lines }) => [title, now, top, lines.length])).toEqual([
    ['GPU load', '83 %, 10 %', 1, 2],
    ['GPU memory', '8 GiB', 48 * GIB, 1],
    ['CPU', '2.3 cores', 4, 1],
    ['Memory', '2.5 MiB', 4_000_000, 1],
  ]);
  expect(drawnOf({ data: [] })).toEqual([]);
});

it.each([
  ['network_receive_bytes_per_second', 0, '0 B/s'],
  ['network_receive_bytes_per_second', 512.4, '512 B/s'],
  ['network_receive_bytes_per_second', 1536, '1.5 kB/s'],
  ['network_receive_bytes_per_second', 3e9, '3 GB/s'],
  ['cpu_cores', 1, '1 core'],
  ['cpu_cores', 0, '0 cores'],
] as const)('says %s of %d as %s', (name, value, words) => {
  expect(drawnOf({ data: [series(name, [value])] })[0]?.now).toBe(words);
});

it.each([
  ['gpu.example.com', 'vscode://vscode-remote/ssh-remote+i-1@gpu.example.com:2222/workspace'],
  ['2001:db8::1', 'vscode://vscode-remote/ssh-remote+i-1@[2001:db8::1]:2222/workspace'],
])('VS Code opens the disk at %s', (host, link) => {
  expect(codeLink({ host, port: 2222, user: 'i-1', command: '', known_hosts: null })).toBe(link);
});

it.each([
  [0.88, 1],
  [1, 1],
  [1.2, 2],
  [2.2, 4],
  [4, 4],
  [569, 600],
  [1024, 2000],
])('draws values up to %d below a line at %d', (most, top) => {
  expect(roundAbove(most)).toBe(top);
});

it.each([
  ['cpu_cores', 0.004, 0.1],
  ['cpu_cores', 0.14, 0.2],
  ['network_receive_bytes_per_second', 22, 1000],
] as const)('draws %s of %d up to %d, whose half has another label', (name, value, top) => {
  const [drawn] = drawnOf({ data: [series(name, [value])] });
  expect(drawn?.top).toBe(top);
  expect(new Set([0, top / 2, top].map((at) => drawn?.show(at))).size).toBe(3);
});

it.each([
  ['GPUBecameUnhealthy', 'GPU became unhealthy'],
  ['StartEnded', 'Start ended'],
  ['WaitingForLogin', 'Waiting for login'],
  ['OOMKilled', 'OOM killed'],
  ['Ready', 'Ready'],
  ['', ''],
])('says the reason %s as %s', (reason, words) => {
  expect(reasonWords(reason)).toBe(words);
});

it('gives no two lines of a chart the same time', () => {
  const at = Date.UTC(2026, 10, 28, 16, 47) / 1000;
  for (const step of [15, 30, 60, 600]) {
    const shown = clocks([0, 1, 2, 3].map((index) => at + index * step));
    expect(new Set(shown).size).toBe(4);
  }
  expect(clocks([at])).toHaveLength(1);
});

it('says the times of a message as clocks here show them', () => {
  const due = '2026-11-28T16:48:08.928Z';
  const text = `The next start is due at ${due}.`;
  const sameDay = localTimes(text, Date.parse(due) - 1000);
  expect(sameDay).toBe(`The next start is due at ${new Date(due).toLocaleTimeString()}.`);
  expect(localTimes(text, Date.parse(due) - 3 * 86_400_000)).toContain(new Date(due).toLocaleString());
  expect(localTimes('No time: 2026-11-28, v1.2.3Z.', 0)).toBe('No time: 2026-11-28, v1.2.3Z.');
});

it.each([
  [true, false, 'Its disk stays.', false],
  [false, false, 'Its disk is on the node: the files in /workspace are deleted.', true],
  [null, false, '', false],
  [false, true, '', false],
  [true, true, '', false],
] as const)(
  'says before a stop what becomes of the disk: survives %s, simulated %s',
  (kept, simulated, words, loses) => {
    const instance = { disk_persistent: kept, simulated } as InstanceRecord;
    expect([diskAtStop(instance), losesFilesAtStop(instance)]).toEqual([words, loses]);
    expect(disksAtStop([instance, instance]).includes('deleted on 2 of them')).toBe(loses);
  },
);

it('says of a start that it costs from where the meter runs, which is no login', () => {
  expect(COSTS_FROM).toContain('container first runs');
  expect(COSTS_FROM).not.toContain('login');
});

it.each([
  ['disk_gb', 'expected number to be <=16384', 'Write a whole number of GB, from 1 to 16384.'],
  ['disk_gb', 'expected number to be >=1', 'Write a whole number of GB.'],
  ['idle_timeout', 'expected a duration', 'Write a time such as 90m, 12h or 1h30m.'],
  ['env.A', 'A: the runtime reads it. Remove it', 'A: the runtime reads it. Remove it.'],
  ['env.A', 'expected at most 10 characters', 'A: Expected at most 10 characters.'],
])('a refusal of %s, %j, is said plainly', (path, expected, said) => expect(plainly(path, expected)).toBe(said));

it('says how large a disk of the chosen offer may be', () =>
  expect(plainly('disk_gb', 'expected number to be <=16384', '100')).toBe(
    'Write a whole number of GB, from 1 to 100.',
  ));
