import { expect, it } from 'vitest';
import { codeLink } from '../../../src/web/page/instances/code-link.ts';
import { drawnOf } from '../../../src/web/page/instances/measures.ts';
import type { MetricsRecord } from '../../../src/wire/records.ts';

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
  expect(drawnOf({ data }).map(({ title, now, limit, lines }) => [title, now, limit, lines.length])).toEqual([
    ['GPU load', '83 %, 10 %', 1, 2],
    ['GPU memory', '8 GiB', 48 * GIB, 1],
    ['CPU', '2.3 cores', undefined, 1],
    ['Memory', '2.5 MiB', undefined, 1],
  ]);
  expect(drawnOf({ data: [] })).toEqual([]);
});

it.each([
  ['gpu.example.com', 'vscode://vscode-remote/ssh-remote+i-1@gpu.example.com:2222/workspace'],
  ['2001:db8::1', 'vscode://vscode-remote/ssh-remote+i-1@[2001:db8::1]:2222/workspace'],
])('VS Code opens the disk at %s', (host, link) => {
  expect(codeLink({ host, port: 2222, user: 'i-1', command: '', known_hosts: null })).toBe(link);
});
