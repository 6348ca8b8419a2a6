import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { measureCreates } from './creates.ts';
import { type Load, measure, type Measured } from './load.ts';
import { TOKEN } from './world.ts';

// The speed table of docs/performance.md, HTTP interface: `npm run bench:http [-- SECONDS]`. Reads are answered from
// caches of 10,000 instances and 1,000 nodes by a process of its own, beside a bare Express in the same process that
// answers the same bytes, in turns. Creates run against a cluster when KUBECONFIG names one.

const seconds = Number(process.argv[2] ?? 5);
const child = fork(fileURLToPath(new URL('./server.ts', import.meta.url)));
const [addresses] = await once(child, 'message');
const { api, bare } = z.object({ api: z.string(), bare: z.string() }).parse(addresses);

const ONE = '/api/v1/instances/i-000000000000';
const ROWS: { name: string; path: string; concurrency: number; token?: string }[] = [
  { name: 'GET /instances/{id}, 32 at a time', path: ONE, concurrency: 32 },
  { name: 'GET /instances/{id}, one at a time', path: ONE, concurrency: 1 },
  { name: 'the same with an unknown key (401), 32', path: ONE, concurrency: 32, token: 'nobody' },
  { name: 'GET /instances, 1,000 of a tenant', path: '/api/v1/instances', concurrency: 1 },
  { name: 'GET /offers, 1,000 nodes', path: '/api/v1/offers', concurrency: 1 },
];

child.send([...new Set(ROWS.map(({ path }) => path))]);
await once(child, 'message');

const headers = (token = TOKEN): Record<string, string> => ({ authorization: `Bearer ${token}` });
const ms = (value: number): string => value.toFixed(value < 10 ? 2 : 1);

/** Milliseconds of CPU that the measured process has used. */
async function cpu(): Promise<number> {
  child.send('cpu');
  const [used] = await once(child, 'message');
  return z.number().parse(used);
}

/** What a machine that is busy with other things cannot blur: CPU time of a request. */
async function measured(load: Load): Promise<Measured & { cpuMs: number }> {
  const before = await cpu();
  const result = await measure(load);
  return { ...result, cpuMs: ((await cpu()) - before) / result.count };
}

console.log('| call | req/s | p50 ms | p99 ms | bare req/s | CPU ms | bare CPU ms |');
console.log('|---|---|---|---|---|---|---|');
try {
  for (const { name, path, concurrency, token } of ROWS) {
    const load: Load = { url: api, path, headers: headers(token), concurrency, seconds, expected: token ? 401 : 200 };
    // Warm first, so that the compiler is not measured.
    for (const url of [api, bare])
      await measure({ ...load, url, seconds: 1, expected: url === api ? load.expected : 200 });
    const ours = await measured(load);
    const theirs = await measured({ ...load, url: bare, expected: 200 });
    const cells = [ours.perSecond.toFixed(0), ms(ours.p50), ms(ours.p99), theirs.perSecond.toFixed(0)];
    console.log(`| ${name} | ${[...cells, ms(ours.cpuMs), ms(theirs.cpuMs)].join(' | ')} |`);
  }
} finally {
  child.kill();
}

const kubeconfig = process.env['KUBECONFIG'];
if (kubeconfig !== undefined) console.log(await measureCreates(kubeconfig));
