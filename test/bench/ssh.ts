/**
 * The SSH gateway against kubectl exec to the same pod on the real node, and under load:
 * `npm run bench:ssh -- [speed|load|all] [MiB] [rounds] [idle connections] [cycles]` prints Markdown tables. Brings up its own cluster; needs root. Everything stays on this machine.
 */
import { cpus } from 'node:os';
import { load } from './ssh/load.ts';
import { makePlace } from './ssh/place.ts';
import { speed } from './ssh/speed.ts';

const [part = 'all', ...numbers] = process.argv.slice(2);
const [mib = 256, rounds = 5, idle = 2000, cycles = 10_000] = numbers.map(Number);

console.log(`${cpus().length} × ${cpus()[0]?.model}\n`);
const place = await makePlace();
try {
  if (part !== 'load') await speed(place, { mib, rounds });
  if (part === 'all') console.log('');
  if (part !== 'speed') await load(place, { idle, cycles });
} finally {
  await place.stop();
}
process.exit(0);
