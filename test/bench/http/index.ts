import { fork } from 'node:child_process';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { load, type LoadOptions, type LoadResult } from '../load.ts';
import { runMain } from '../../../tools/lib/failure.ts';
import { withCluster } from '../cluster.ts';
import { type Aim, judged, median } from '../figures.ts';
import { measureCreates } from './creates.ts';
import { TOKEN } from './world.ts';

// The speed table of docs/build/performance.md, HTTP interface: `npm run bench:http [-- SECONDS [TURNS]]`. Reads are answered
// from caches of 10,000 instances and 1,000 nodes by a process of its own, beside a bare Express in the same process that
// answers the same bytes, in turns. Creates run on a cluster of their own, or on the one that KUBECONFIG names.

const [seconds = 2, turns = 3] = process.argv.slice(2).map(Number);
const child = fork(fileURLToPath(new URL('./server.ts', import.meta.url)));
const [addresses] = await once(child, 'message');
const { api, bare } = z.object({ api: z.number(), bare: z.number() }).parse(addresses);

const ONE = '/api/v1/instances/i-000000000000';
const CAUSE = 'load generator and process share the cores, and the process is one thread';

interface Row {
  name: string;
  path: string;
  connections: number;
  token?: string;
  /** Answers a second, or milliseconds. */
  aims?: { figure: 'perSecond' | 'p50' | 'p99'; aim: Aim }[];
}

const ROWS: Row[] = [
  {
    name: 'one instance, 32 at a time',
    path: ONE,
    connections: 32,
    aims: [
      { figure: 'perSecond', aim: { least: 5000, cause: CAUSE } },
      { figure: 'p99', aim: { most: 10, cause: CAUSE } },
    ],
  },
  { name: 'one instance, one at a time', path: ONE, connections: 1 },
  { name: 'unknown key (401), 32 at a time', path: ONE, connections: 32, token: 'nobody' },
  {
    name: 'list of 1,000',
    path: '/api/v1/instances',
    connections: 1,
    aims: [{ figure: 'p50', aim: { most: 15, cause: CAUSE } }],
  },
  {
    name: 'offers of 1,000 nodes',
    path: '/api/v1/offers',
    connections: 1,
    aims: [{ figure: 'p50', aim: { most: 5, cause: CAUSE } }],
  },
];

child.send([...new Set(ROWS.map(({ path }) => path))]);
await once(child, 'message');

const headers = (token = TOKEN): Record<string, string> => ({ authorization: `Bearer ${token}` });
const ms = (value: number): string => value.toFixed(value < 1 ? 2 : 1);

/** Milliseconds of CPU that the measured process has used. */
async function cpu(): Promise<number> {
  child.send('cpu');
  const [used] = await once(child, 'message');
  return z.number().parse(used);
}

/** Adds the CPU time of an answer, which other work on the machine does not change. */
async function measured(options: LoadOptions): Promise<LoadResult & { cpuMs: number }> {
  const before = await cpu();
  const result = await load(options);
  if (result.errors > 0) throw new Error(`${options.path}: ${result.errors} answers were not what was asked for.`);
  return { ...result, cpuMs: ((await cpu()) - before) / result.count };
}

type Turn = Awaited<ReturnType<typeof measured>>;

/** The median turn, figure by figure. */
function medianOf(all: readonly Turn[], figure: keyof Turn): number {
  return median(all.map((turn) => turn[figure]));
}

console.log(`load average at the start: ${loadavg().map(ms).join(' ')}\n`);
console.log(
  '| call | Berth, req/s | p50 / p99 | bare Express, req/s | p50 / p99 | ratio | CPU µs per call, Berth / bare | to reach |',
);
console.log('|---|---|---|---|---|---|---|---|');
try {
  for (const { name, path, connections, token, aims = [] } of ROWS) {
    const theirs: LoadOptions = { port: bare, path, headers: headers(token), connections, duration: seconds * 1000 };
    const ours: LoadOptions = { ...theirs, port: api, status: token ? 401 : 200 };
    // Warm up first: the compiler's work is not measured.
    for (const options of [ours, theirs]) await load({ ...options, duration: 1000 });
    const found: { ours: Turn[]; theirs: Turn[] } = { ours: [], theirs: [] };
    for (let turn = 0; turn < turns; turn += 1) {
      found.ours.push(await measured(ours));
      found.theirs.push(await measured(theirs));
    }
    const figures = (all: readonly Turn[]): string[] => [
      Math.round(medianOf(all, 'perSecond')).toLocaleString('en'),
      `${ms(medianOf(all, 'p50'))} / ${ms(medianOf(all, 'p99'))} ms`,
    ];
    const ratio = (medianOf(found.ours, 'perSecond') / medianOf(found.theirs, 'perSecond')).toFixed(2);
    const costs = [found.ours, found.theirs].map((all) => (medianOf(all, 'cpuMs') * 1000).toFixed(0)).join(' / ');
    const verdicts = aims.map(({ figure, aim }) => `${figure} ${judged(aim, medianOf(found.ours, figure))}`).join(', ');
    console.log(`| ${[name, ...figures(found.ours), ...figures(found.theirs), ratio, costs, verdicts].join(' | ')} |`);
  }
} finally {
  child.kill();
}

await runMain(() => withCluster(async (kubeconfig) => console.log(await measureCreates(kubeconfig))));
