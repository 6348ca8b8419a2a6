import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { runMain } from '../../../tools/lib/failure.ts';
import { withCluster } from '../cluster.ts';
import { judged, quantile } from '../figures.ts';
import type { AttackName } from './attacks.ts';
import { type CallName, feel, type Felt, recovered } from './honest.ts';
import { cpuSeconds, makeWorld, residentMib, type World } from './world.ts';

// What an honest tenant feels while another tenant or a stranger attacks: `npm run bench:shares [-- SECONDS [ATTACK ...]]`.
// All of Berth in one process, the attacker in another, at another address. On a cluster of its own, or on the one that
// KUBECONFIG names.

interface Row {
  attack: AttackName;
  words: string;
  call: CallName;
  /** Why the honest tenant feels it. */
  cause?: string;
}

const CREATIONS = 'at first the attacker may rent all at once, and creations wait for the API server';

const ROWS: Row[] = [
  { attack: 'signIns', words: '200 sign-ins whose body stalls, without a key', call: 'read' },
  { attack: 'creations', words: '200 creations whose body stalls', call: 'read' },
  { attack: 'sockets', words: '10,000 idle connections from one address', call: 'read' },
  { attack: 'uploads', words: '32 prompts of 32 MiB that stall', call: 'chat' },
  { attack: 'silentEngine', words: '1,200 calls of an engine that never answers', call: 'chat' },
  { attack: 'brokenEngine', words: 'calls of an engine that breaks off, without a pause', call: 'chat' },
  { attack: 'responses', words: '9,000 stored responses with nine keys', call: 'recall' },
  { attack: 'longResponses', words: '6 readers of a stored response of 5 MB, without a pause', call: 'read' },
  { attack: 'strangers', words: '40 clients without a key, without a pause', call: 'read' },
  { attack: 'claims', words: '256 creations at a time, without a pause', call: 'create', cause: CREATIONS },
  { attack: 'streams', words: '6,000 event streams with nine keys', call: 'stream' },
  { attack: 'pendingLogins', words: '2,000 SSH connections that never log in, from one address', call: 'login' },
  { attack: 'rekeys', words: '8 SSH connections that exchange keys without a pause', call: 'login' },
  { attack: 'connections', words: '1,500 SSH connections of one tenant', call: 'login' },
];

const [seconds = '5', ...only] = process.argv.slice(2);
const MEASURED_MS = Number(seconds) * 1000;
const WARM_MS = 1000;

/** How many times its quiet 99th percentile an honest call may take. */
const MOST_TIMES = 2;

const short = (value: number): string => value.toFixed(value < 10 ? 1 : 0);

async function startAttack(attack: AttackName, { http, berth, attacker }: World): Promise<ChildProcess> {
  const program = fileURLToPath(new URL('./attacker.ts', import.meta.url));
  const target = JSON.stringify({ http, ssh: berth.sshPort, side: attacker });
  const child = spawn(process.execPath, [program, attack], {
    env: { ...process.env, TARGET: target },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
  if (child.exitCode !== null) throw new Error(`The attack ${attack} ended by itself.`);
  return child;
}

function figures({ times, failures }: Felt): string {
  const lost = failures.length === 0 ? '' : `, ${failures.length} of ${failures.length + times.length} refused`;
  return `${short(quantile(times, 0.5))} / ${short(quantile(times, 0.99))} ms${lost}`;
}

async function measure({ attack, words, call, cause = 'not known' }: Row, world: World): Promise<string> {
  const target = { http: world.http, ssh: world.berth.sshPort, side: world.honest };
  const pid = world.berth.child.pid ?? 0;
  // What the attack before this one broke has healed.
  await recovered(call, target);
  await feel(call, target, WARM_MS);
  const quiet = await feel(call, target, MEASURED_MS);
  const before = residentMib(pid);
  const child = await startAttack(attack, world);
  const cpu = cpuSeconds(pid);
  const began = performance.now();
  const attacked = await feel(call, target, MEASURED_MS);
  const core = ((cpuSeconds(pid) - cpu) * 100_000) / (performance.now() - began);
  const memory = residentMib(pid) - before;
  child.kill('SIGKILL');
  await once(child, 'exit');
  const [first] = attacked.failures;
  if (first !== undefined) console.error(`${attack}: ${first}`);
  const ratio = quantile(attacked.times, 0.99) / quantile(quiet.times, 0.99);
  return `| ${[words, call, figures(quiet), figures(attacked), ratio.toFixed(1), `${memory.toFixed(0)} MiB`, `${core.toFixed(0)} %`, judged({ most: MOST_TIMES, cause }, ratio)].join(' | ')} |`;
}

await runMain(() =>
  withCluster(async (kubeconfig) => {
    await using world = await makeWorld(kubeconfig);
    console.log(`load average at the start: ${loadavg().map(short).join(' ')}\n`);
    console.log(
      '| attack | honest call | quiet, p50 / p99 | under attack, p50 / p99 | p99, times quiet | memory | CPU of a core, both | to reach |',
    );
    console.log('|---|---|---|---|---|---|---|---|');
    for (const row of ROWS.filter(({ attack }) => only.length === 0 || only.includes(attack))) {
      console.log(await measure(row, world));
    }
  }),
);
process.exit(0);
