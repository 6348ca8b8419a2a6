import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Place } from './place.ts';

const MIB = 1024 * 1024;

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** Milliseconds that a shell command takes. Throws when it fails. */
async function timed(command: string): Promise<number> {
  const began = performance.now();
  const child = spawn('sh', ['-c', command], { stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = (await once(child, 'close')) as [number];
  if (code !== 0) throw new Error(`${command}: status ${code}`);
  return performance.now() - began;
}

/** Medians of two commands run in turns, so that a busy machine slows both. */
async function inTurns(ours: string, theirs: string, count: number): Promise<[number, number]> {
  const [a, b]: [number[], number[]] = [[], []];
  await timed(ours);
  await timed(theirs);
  for (let round = 0; round < count; round += 1) {
    a.push(await timed(ours));
    b.push(await timed(theirs));
  }
  return [median(a), median(b)];
}

/** Prints rows that compare the gateway with kubectl exec to the same pod. */
export async function speed({ ssh, kubectl }: Place, options: { mib: number; rounds: number }): Promise<void> {
  const { mib, rounds } = options;
  const small = rounds * 5;
  console.log(`Medians of ${small} and ${rounds} runs, in turns.\n`);
  console.log('| figure | berth ssh | kubectl exec | ratio | to reach |\n|---|---|---|---|---|');
  const [ours, theirs] = await inTurns(`${ssh} true </dev/null`, `${kubectl} true </dev/null`, small);
  const ratio = (ours / theirs).toFixed(2);
  console.log(`| \`true\`, connection to exit | ${ours.toFixed(0)} ms | ${theirs.toFixed(0)} ms | ${ratio} | ≤ 1.3 |`);
  const head = `head -c ${mib * MIB} /dev/zero`;
  const bulk = {
    out: [`${ssh} '${head}' </dev/null`, `${kubectl} ${head} </dev/null`],
    in: [`${head} | ${ssh} 'wc -c'`, `${head} | ${kubectl} wc -c`],
  } as const;
  const rate = (ms: number): string => `${((mib / ms) * 1000).toFixed(0)} MiB/s`;
  for (const [direction, [mine, reference]] of Object.entries(bulk)) {
    const [a, b] = await inTurns(mine, reference, rounds);
    console.log(`| ${mib} MiB ${direction} | ${rate(a)} | ${rate(b)} | ${(b / a).toFixed(2)} | ≥ 0.65 |`);
  }
}
