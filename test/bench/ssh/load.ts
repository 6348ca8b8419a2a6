import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { waitFor } from '../../support/wait-for.ts';
import { judged } from '../figures.ts';
import type { Place } from './place.ts';

const MIB = 1024 * 1024;
const CLIENTS = new URL('clients.ts', import.meta.url).pathname;
/** Longer than it takes to miss three keep-alives, 15 s apart, and be cut. */
const WATCHED_MS = 65_000;
const STALL_MS = 10_000;
/** Each of these was reached; a miss is news. */
const CAUSE = 'not known';

function rss(): number {
  globalThis.gc?.();
  return process.memoryUsage().rss;
}

function clients({ server, privateKey }: Place, mode: string, count: number) {
  const args = [CLIENTS, String(server.address.port), mode, String(count)];
  const child = spawn(process.execPath, args, { env: { ...process.env, KEY: privateKey } });
  child.stderr.pipe(process.stderr);
  let output = '';
  child.stdout.on('data', (part) => (output += String(part)));
  return { child, output: () => output };
}

async function during(ms: number, look: () => void = () => undefined): Promise<void> {
  const until = performance.now() + ms;
  await waitFor('the time to pass', () => (look(), performance.now() > until), ms + 10_000);
}

async function idle(place: Place, count: number): Promise<void> {
  const warm = clients(place, 'cycles', 20);
  await once(warm.child, 'close');
  await waitFor('the connections to go', () => place.server.connections === 0);
  const before = rss();
  const { child, output } = clients(place, 'idle', count);
  await waitFor('the connections', () => output().includes('done') && place.server.connections === count, 300_000);
  const each = (rss() - before) / 1024 / count;
  await during(WATCHED_MS);
  const still = place.server.connections;
  child.stdin.write('end\n');
  await once(child, 'close');
  const lost = `${count - still} cut by us, ${output().split('lost ')[1]?.trim()} lost by the clients`;
  console.log(
    `| ${count} idle connections, each | ${each.toFixed(0)} KiB; after ${WATCHED_MS / 1000} s ${lost} | ${judged({ most: 150, cause: CAUSE }, each)} KiB, 0 |`,
  );
  await waitFor('the connections to go', () => place.server.connections === 0);
}

async function cycles(place: Place, count: number): Promise<void> {
  const handles = (): number => process.getActiveResourcesInfo().length;
  const warm = clients(place, 'cycles', 100);
  await once(warm.child, 'close');
  await waitFor('the connections to go', () => place.server.connections === 0);
  const before = { handles: handles(), heap: (rss(), process.memoryUsage().heapUsed) };
  const began = performance.now();
  const { child, output } = clients(place, 'cycles', count);
  await once(child, 'close');
  const seconds = (performance.now() - began) / 1000;
  await waitFor('the connections to go', () => place.server.connections === 0);
  await waitFor('the handles to go', () => handles() <= before.handles + 1).catch(() => undefined);
  const heap = ((rss(), process.memoryUsage().heapUsed) - before.heap) / MIB;
  const left = `${handles() - before.handles} handles and timers, ${heap.toFixed(1)} MiB of heap left`;
  console.log(
    `| ${count} logins that end at once, ${(count / seconds).toFixed(0)} a second | ${left}, ${output().split('lost ')[1]?.trim()} failed | 0, flat, 0 |`,
  );
}

async function stalled({ direct, server }: Place): Promise<void> {
  const before = rss();
  const child: ChildProcessWithoutNullStreams = spawn('sh', [
    '-c',
    `exec ${direct.shell} 'head -c ${1024 * MIB} /dev/zero'`,
  ]);
  let peak = 0;
  await during(STALL_MS, () => (peak = Math.max(peak, process.memoryUsage().rss)));
  child.kill();
  child.stdout.resume();
  await once(child, 'close');
  await waitFor('the connection to go', () => server.connections === 0);
  console.log(
    `| 1 GiB to a client that does not read, ${STALL_MS / 1000} s | ${((peak - before) / MIB).toFixed(0)} MiB above idle | ${judged({ most: 32, cause: CAUSE }, (peak - before) / MIB)} MiB |`,
  );
}

/** Prints rows on what many connections and a stalled one cost this process. */
export async function load(place: Place, options: { idle: number; cycles: number }): Promise<void> {
  console.log('| load | cost | to reach |\n|---|---|---|');
  // Before the cycles: what they leave to be reused would make the connections look free.
  await idle(place, options.idle);
  await stalled(place);
  if (options.cycles > 0) await cycles(place, options.cycles);
}
