import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { PODS } from '../../src/kube/types.ts';
import { REAL_NODE } from '../../tools/cluster/built/real-node.ts';
import type { BuiltE2eCluster } from '../e2e/support/built-driver.ts';
import { kill as end, processesOf, replicasOf } from '../e2e/support/processes.ts';
import { NAMESPACE, ROLES } from '../e2e/support/release.ts';
import type { Kill, Log } from './record.ts';

/** Milliseconds between two kills, least and most. */
const BETWEEN = [10_000, 20_000] as const;
/** Milliseconds at most that the API server or the kubelet stays down before it is started again. */
const AWAY = 5000;

type Role = (typeof ROLES)[number];
type Program = 'kube-apiserver' | 'kubelet';
type Victim = { program: Program } | { role: Role; graceful: boolean };

/** One victim in five is the API server, one the kubelet. The others are pods of Berth: half are killed, half deleted. */
export function chooseVictim(random: () => number): Victim {
  const draw = random();
  if (draw < 0.2) return { program: 'kube-apiserver' };
  if (draw < 0.4) return { program: 'kubelet' };
  const role = ROLES[Math.floor(random() * ROLES.length)] ?? 'api';
  return { role, graceful: random() < 0.5 };
}

export interface KillerOptions {
  cluster: BuiltE2eCluster;
  client: KubeClient;
  log: Log;
  random: () => number;
  stopping: AbortSignal;
}

/** Kills at random until `stopping` aborts, and starts again what Kubernetes does not. */
export async function killAtRandom(options: KillerOptions): Promise<void> {
  const { random, stopping } = options;
  while (!stopping.aborted) {
    const wait = BETWEEN[0] + random() * (BETWEEN[1] - BETWEEN[0]);
    await delay(wait, undefined, { signal: stopping }).catch(() => undefined);
    if (stopping.aborted) return;
    const victim = chooseVictim(random);
    // Drawn for every victim, so that the seed alone decides what comes next.
    const [which, away] = [random(), random() * AWAY];
    await ('program' in victim ? killProgram(options, victim.program, away) : killPod(options, victim, which));
  }
}

/** Where a program says that it works. The API server passes on what the kubelet says. */
const HEALTH: Readonly<Record<Program, string>> = {
  'kube-apiserver': '/readyz',
  kubelet: `/api/v1/nodes/${REAL_NODE}/proxy/healthz`,
};
/** Milliseconds between two looks whether a program is back. */
const LOOK = 100;

/** Notes when a program answers again. Gives up when the run ends. */
async function noteReady({ client, stopping }: KillerOptions, program: Program, kill: Kill): Promise<void> {
  while (!stopping.aborted && kill.readyAt === undefined) {
    const signal = AbortSignal.timeout(1000);
    const answer = await client.stream(HEALTH[program], {}, { signal }).catch(() => undefined);
    // A body that is destroyed before its end emits an error.
    answer?.on('error', () => undefined).destroy();
    if (answer === undefined) await delay(LOOK);
    else kill.readyAt = performance.now();
  }
}

async function killProgram(options: KillerOptions, program: Program, away: number): Promise<void> {
  const { cluster, log } = options;
  const path = join(cluster.programs, program);
  const [pid] = await processesOf(cluster.initPid, ([command]) => command === path);
  if (pid === undefined) throw new Error(`${program} does not run, and no kill of this run ended it.`);
  const how = `killed, away for ${(away / 1000).toFixed(1)} s`;
  const kill = note(log, program === 'kubelet' ? 'kubelet' : 'API server', how);
  await end(cluster.initPid, pid);
  await delay(away);
  cluster.startAgain(program);
  void noteReady(options, program, kill);
}

async function killPod(
  { cluster, client, log }: KillerOptions,
  { role, graceful }: { role: Role; graceful: boolean },
  which: number,
): Promise<void> {
  const pick = <T>(all: readonly T[]): T | undefined => all[Math.floor(which * all.length)];
  if (graceful) {
    const labelSelector = `app.kubernetes.io/component=${role}`;
    const { items } = await client.list(PODS, { namespace: NAMESPACE, labelSelector }).catch(() => ({ items: [] }));
    const pod = pick(items.filter(({ metadata }) => metadata.deletionTimestamp === undefined));
    if (pod !== undefined) {
      note(log, `${role} pod`, 'deleted');
      // Nothing is deleted while the API server is down.
      await client.delete(PODS, pod.metadata).catch(() => undefined);
      return;
    }
  }
  const found = await replicasOf(cluster.initPid, role);
  const pid = pick(found);
  // All replicas wait for their restart, so there is nothing to kill.
  if (pid === undefined) return;
  note(log, `${role} pod`, 'killed');
  await end(cluster.initPid, pid);
}

function note(log: Log, target: string, how: string): Kill {
  const kill = { at: performance.now(), target, how };
  log.kills.push(kill);
  process.stderr.write(`${((kill.at - log.start) / 1000).toFixed(1).padStart(6)} s  ${target}: ${how}\n`);
  return kill;
}
