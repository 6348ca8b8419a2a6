import { benchmark, offersLine } from './controller/run.ts';
import { runMain } from '../../tools/lib/failure.ts';
import { withCluster } from './cluster.ts';

// The speed table of docs/performance.md: `npm run bench:controller [-- NODES:INSTANCES ...]`. On a cluster of its own, or
// on the one that KUBECONFIG names.

const SIZES = ['100:500'];

function parse(text: string): { nodes: number; instances: number } {
  const [nodes = 0, instances = 0] = text.split(':').map(Number);
  if (!(nodes > 0 && instances > 50)) throw new RangeError(`Write NODES:INSTANCES, for example 100:500, not ${text}.`);
  return { nodes, instances };
}

const wanted = process.argv.slice(2);
const sizes = (wanted.length === 0 ? SIZES : wanted).map(parse);
console.log(offersLine());
await runMain(() =>
  withCluster(async (kubeconfig) => {
    for (const size of sizes) console.log((await benchmark({ kubeconfig, ...size })).join('\n'));
  }),
);
