import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TOOLS_BIN } from '../../../src/resources/pod/tools-volume.ts';
import type { Place } from './place.ts';

const MIB = 1024 * 1024;
const SMALL_FILES = 10_000;

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

/** Medians of commands run in turns, so that a busy machine slows all of them. */
async function inTurns(commands: readonly string[], count: number): Promise<number[]> {
  const times = commands.map((): number[] => []);
  for (const command of commands) await timed(command);
  for (let round = 0; round < count; round += 1) {
    for (const [index, command] of commands.entries()) times[index]?.push(await timed(command));
  }
  return times.map(median);
}

function row(figure: string, texts: readonly string[], ratios: readonly number[], aims: string): void {
  console.log(`| ${[figure, ...texts, ...ratios.map((ratio) => ratio.toFixed(2)), aims].join(' | ')} |`);
}

/** A folder with many small files, in folders of a hundred. */
function smallFiles(folder: string): string {
  const source = join(folder, 'small');
  for (let n = 0; n < SMALL_FILES; n += 1) {
    const parent = join(source, String(n % 100));
    mkdirSync(parent, { recursive: true });
    writeFileSync(join(parent, String(n)), randomBytes(1024));
  }
  return source;
}

/** Prints rows that compare the gateway, by both ways, with kubectl exec to the same pod. */
export async function speed(place: Place, options: { mib: number; rounds: number }): Promise<void> {
  const { ssh, sshByExec, kubectl } = place;
  const { mib, rounds } = options;
  const small = rounds * 5;
  console.log(`Medians of ${small} and ${rounds} runs, in turns.\n`);
  console.log('| figure | direct | by exec | kubectl exec | ratio, direct | ratio, by exec | to reach |');
  console.log('|---|---|---|---|---|---|---|');
  const logins = [ssh, sshByExec, kubectl].map((line) => `${line} true </dev/null`);
  const [direct = 0, exec = 0, reference = 0] = await inTurns(logins, small);
  const times = [direct, exec, reference].map((ms) => `${ms.toFixed(0)} ms`);
  row('`true`, connection to exit', times, [direct / reference, exec / reference], '≤ 1.0, ≤ 1.3');
  // Programs that cost little themselves: head and wc of busybox take a byte at a time, and so most of a core.
  const zeros = `dd if=/dev/zero bs=65536 count=${mib * 16} status=none`;
  const out = [`${ssh} '${zeros}'`, `${sshByExec} '${zeros}'`, `${kubectl} ${zeros}`];
  // kubectl exec ends early when the shell becomes the program that takes the bytes.
  const sink = 'cat > /dev/null; true';
  const into = [`${ssh} '${sink}'`, `${sshByExec} '${sink}'`, `${kubectl} sh -c '${sink}'`];
  const bulk = [
    ['out', out.map((line) => `${line} </dev/null`), '≥ 3, ≥ 0.65'],
    ['in', into.map((line) => `head -c ${mib * MIB} /dev/zero | ${line}`), '≥ 1.5, ≥ 0.65'],
  ] as const;
  for (const [direction, commands, aims] of bulk) {
    const [a = 0, b = 0, c = 0] = await inTurns(commands, rounds);
    const rates = [a, b, c].map((ms) => `${((mib / ms) * 1000).toFixed(0)} MiB/s`);
    row(`${mib} MiB ${direction}`, rates, [c / a, c / b], aims);
  }
  const source = smallFiles(place.folder);
  const copyTo = (shell: string, folder: string): string =>
    `rsync -a --rsync-path=${TOOLS_BIN}/rsync -e '${shell}' ${source}/ 127.0.0.1:${folder}/`;
  const copies = place.remoteShells.map((shell) => copyTo(shell, '/copy-$(date +%N)'));
  const [a = 0, b = 0, c = 0] = await inTurns(copies, rounds);
  const seconds = [a, b, c].map((ms) => `${(ms / 1000).toFixed(1)} s`);
  row(`${SMALL_FILES} files of 1 KiB in, by rsync`, seconds, [c / a, c / b], '≥ 3');
  await timed(copyTo(place.remoteShells[0] ?? '', '/source'));
  const [alone = 0] = await inTurns([`${kubectl} sh -c "${TOOLS_BIN}/rsync -a /source/ /copy-$(date +%N)/"`], rounds);
  console.log(`\nrsync takes ${(alone / 1000).toFixed(1)} s for them from one folder of the pod to another.`);
}
