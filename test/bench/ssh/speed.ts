import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { TOOLS_BIN } from '../../../src/resources/pod/tools-volume.ts';
import { type Aim, judged, median } from '../figures.ts';
import type { Place, Way } from './place.ts';

const MIB = 1024 * 1024;
const SMALL_FILES = 10_000;

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

type Format = (ms: number) => string;
const asMs: Format = (ms) => `${ms.toFixed(0)} ms`;
const asSeconds: Format = (ms) => `${(ms / 1000).toFixed(1)} s`;

interface Figure {
  format: Format;
  /** How many times as fast as kubectl exec the gateway is to be: the direct way, and the one by exec. */
  aims?: { direct: Aim; exec?: Aim };
  runs?: number;
}

/** Client, helper, gateway and API server have these cores between them. */
const ARE_FEW = cpus().length <= 2;
const ENCRYPTS_TWICE = 'each byte is encrypted twice, from the helper to the gateway and from there to the client';
const EXEC_CAUSE = 'the bytes pass the kubelet and the API server, as those of kubectl exec do, and the gateway too';
const AIMS = {
  login: {
    direct: { least: 1, cause: 'the gateway asks the API server about key and pod' },
    exec: { least: 0.77, cause: EXEC_CAUSE },
  },
  out: { direct: { least: ARE_FEW ? 1.9 : 3, cause: ENCRYPTS_TWICE }, exec: { least: 0.65, cause: EXEC_CAUSE } },
  into: { direct: { least: 1.5, cause: ENCRYPTS_TWICE }, exec: { least: 0.65, cause: EXEC_CAUSE } },
  rsync: { direct: { least: ARE_FEW ? 1 : 3, cause: 'rsync waits for itself, as it does within the pod' } },
};

/** A folder with many small files, in folders of a hundred. */
function smallFiles(folder: string): string {
  const source = join(folder, 'small');
  for (let n = 0; n < SMALL_FILES; n += 1) {
    const parent = join(source, String(n % (SMALL_FILES / 100)));
    mkdirSync(parent, { recursive: true });
    writeFileSync(join(parent, String(n)), randomBytes(1024));
  }
  return source;
}

/** Prints rows that compare the gateway, by both ways, with kubectl exec to the same pod and with OpenSSH's server here. */
export async function speed(place: Place, { mib, rounds }: { mib: number; rounds: number }): Promise<void> {
  const ways = [place.direct, place.exec, place.kubectl, place.sshd];
  const row = async (name: string, command: (way: Way) => string, { format, aims, runs = rounds }: Figure) => {
    const times = await inTurns(ways.map(command), runs);
    const [direct = 0, exec = 0, kubectl = 0] = times;
    const ratios = [kubectl / direct, kubectl / exec];
    const verdicts = [aims?.direct, aims?.exec].flatMap((aim, at) => (aim ? [judged(aim, ratios[at] ?? 0)] : []));
    const cells = [...times.map(format), ...ratios.map((ratio) => ratio.toFixed(2)), verdicts.join(', ')];
    console.log(`| ${[name, ...cells].join(' | ')} |`);
  };
  const asRate: Format = (ms) => `${((mib / ms) * 1000).toFixed(0)} MiB/s`;
  console.log(
    `Medians of ${rounds * 5} and ${rounds} runs, in turns. The ratios are how many times as fast as kubectl exec.\n`,
  );
  console.log('| figure | direct | by exec | kubectl exec | sshd | direct | by exec | to reach |');
  console.log('|---|---|---|---|---|---|---|---|');
  const login = ({ shell }: Way): string => `${shell} true </dev/null`;
  await row('`true`, connection to exit', login, { format: asMs, aims: AIMS.login, runs: rounds * 5 });
  // Programs that cost little themselves: head and wc of busybox take a byte at a time, and so most of a core.
  const zeros = `dd if=/dev/zero bs=65536 count=${mib * 16} status=none`;
  const out = ({ shell }: Way): string => `${shell} '${zeros}' </dev/null`;
  await row(`${mib} MiB out`, out, { format: asRate, aims: AIMS.out });
  // kubectl exec ends early when the shell becomes the program that takes the bytes.
  const into = ({ shell }: Way): string => `head -c ${mib * MIB} /dev/zero | ${shell} 'cat > /dev/null; true'`;
  await row(`${mib} MiB in`, into, { format: asRate, aims: AIMS.into });
  const source = smallFiles(place.folder);
  const rsync = ({ rsync: there, remoteShell }: Way, to: string): string =>
    `rsync -a --rsync-path=${there} -e '${remoteShell}' ${source}/ 127.0.0.1:${to}/`;
  const copy = '/copy-$(date +%N)';
  const files = `${SMALL_FILES} files of 1 KiB in`;
  const byRsync = (way: Way): string => rsync(way, `${way.folder}${copy}`);
  await row(`${files}, by rsync`, byRsync, { format: asSeconds, aims: AIMS.rsync });
  const byScp = ({ scp, folder }: Way): string => `${scp} -q -r ${source} 127.0.0.1:${folder}${copy}`;
  await row(`${files}, by scp`, byScp, { format: asSeconds, runs: 1 });
  await timed(rsync(place.direct, '/source'));
  const [alone = 0] = await inTurns([`${place.kubectl.shell} "${TOOLS_BIN}/rsync -a /source/ ${copy}/"`], rounds);
  console.log(`\nrsync takes ${asSeconds(alone)} for them from one folder of the pod to another.`);
}
