import { join } from 'node:path';
import { bringUp } from '../../src/local/bring-up.ts';
import { takeState } from '../../src/local/keeper.ts';
import { readOptions } from '../../src/local/options.ts';
import { cacheFolder, stateFolder } from '../../src/local/paths.ts';
import { createProgress } from '../../src/local/progress.ts';
import { removeRecord } from '../../src/local/record.ts';
import { benchmark, offersLine } from './controller/run.ts';

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
const state = join(stateFolder(), 'bench');
const lock = await takeState(state);
const progress = createProgress({ write: (text) => process.stderr.write(text), isTty: false, columns: 80 });
const cluster = await bringUp({
  ...readOptions([], process.env, join(stateFolder(), 'kubeconfig')),
  state,
  cache: cacheFolder(process.env),
  interactive: false,
  tidy: false,
  total: 2,
  progress,
  signal: new AbortController().signal,
});
try {
  for (const size of sizes) console.log((await benchmark({ kubeconfig: cluster.kubeconfig, ...size })).join('\n'));
} finally {
  await cluster.stop();
  removeRecord(state);
  lock.release();
}
