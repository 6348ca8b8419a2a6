import { benchmark, offersLine } from './controller/run.ts';
import { FULL, measureRow, ROWS, type Scale } from './controller/scale.ts';
import { runMain } from '../../tools/lib/failure.ts';
import { withCluster } from './cluster.ts';

// The speed table of docs/build/performance.md: `npm run bench:controller [-- NODES:INSTANCES ...]`, and its table of scale:
// `npm run bench:controller -- rows [ROW ...] [NODES:INSTANCES:WAITERS:OBJECTS]`, all rows where none is named. On a
// cluster of its own, or on the one that KUBECONFIG names.

const SIZES = ['100:500'];

function parse(text: string): { nodes: number; instances: number } {
  const [nodes = 0, instances = 0] = text.split(':').map(Number);
  if (!(nodes > 0 && instances > 50)) throw new RangeError(`Write NODES:INSTANCES, for example 100:500, not ${text}.`);
  return { nodes, instances };
}

function parseScale(text: string): Scale {
  const [nodes = 0, instances = 0, waiters = 0, objects = 0] = text.split(':').map(Number);
  if (nodes > 0 && instances >= nodes && waiters >= 10 && objects > 0) return { nodes, instances, waiters, objects };
  throw new RangeError(`Write NODES:INSTANCES:WAITERS:OBJECTS, for example 1000:5000:1000:5000, not ${text}.`);
}

async function speed(wanted: readonly string[], kubeconfig: string): Promise<void> {
  for (const size of (wanted.length === 0 ? SIZES : wanted).map(parse)) {
    console.log((await benchmark({ kubeconfig, ...size })).join('\n'));
  }
}

async function scale(wanted: readonly string[], kubeconfig: string): Promise<void> {
  const size = wanted.find((word) => word.includes(':'));
  const rows = wanted.filter((word) => word !== size);
  for (const row of rows.length === 0 ? Object.keys(ROWS) : rows) {
    console.log((await measureRow(kubeconfig, row, size === undefined ? FULL : parseScale(size))).join('\n'));
  }
}

const [first, ...rest] = process.argv.slice(2);
const isScale = first === 'rows';
if (!isScale) console.log(offersLine());
await runMain(() =>
  withCluster((kubeconfig) => (isScale ? scale(rest, kubeconfig) : speed(process.argv.slice(2), kubeconfig))),
);
