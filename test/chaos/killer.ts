import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { PODS } from '../../src/kube/types.ts';
import { REAL_NODE } from '../../tools/cluster/built/real-node.ts';
import type { BuiltE2eCluster } from '../e2e/support/built-driver.ts';
import { kill as end, killWhole, processesOf, replicasOf } from '../e2e/support/processes.ts';
import { NAMESPACE, ROLES } from '../e2e/support/release.ts';
import { type Drained, drainNode, type DrainOptions, podsOfInstances } from './drain.ts';
import type { Kill, Log } from './record.ts';
import { ORDERS, POLICIES, restore, type Restore, type RestoreOptions } from './restore.ts';

/** Milliseconds between two kills, least and most. */
const BETWEEN = [10_000, 20_000] as const;
/** Milliseconds at most that the API server or the kubelet stays down before it is started again. */
const AWAY = 5000;

type Role = (typeof ROLES)[number];
type Program = 'kube-apiserver' | 'kubelet';
type Victim =
  | { program: Program }
  | { role: Role; graceful: boolean }
  | { pod: 'instance' }
  | { drained: Drained }
  | Restore;

/**
 * Of twenty faults three hit the API server, three the kubelet, and six pods of Berth, of which half are killed and half
 * deleted. Three delete the pod of an instance by force, two drain a node, and three restore an instance and its disk.
 */
export function chooseVictim(random: () => number): Victim {
  const draw = random();
  const pick = <T>(all: readonly [T, ...T[]]): T => all[Math.floor(random() * all.length)] ?? all[0];
  if (draw < 0.15) return { program: 'kube-apiserver' };
  if (draw < 0.3) return { program: 'kubelet' };
  if (draw < 0.6) return { role: pick(ROLES), graceful: random() < 0.5 };
  if (draw < 0.75) return { pod: 'instance' };
  if (draw < 0.85) return { drained: pick(['real', 'simulated', 'simulated']) };
  return { policy: pick(POLICIES), order: pick(ORDERS) };
}

export interface KillerOptions extends DrainOptions, RestoreOptions {
  cluster: BuiltE2eCluster;
  log: Log;
  random: () => number;
  /** Names of the simulated nodes. */
  simulated: readonly string[];
  /** What came back from a restore, and is not what was saved. */
  broken: string[];
  stopping: AbortSignal;
}

/** Milliseconds at most that a drained node takes no pods, and between the two halves of a restore. */
const CLOSED = 15_000;

/** Drains and restores, which take longer than a kill: the next faults come while they are under way. */
class LongFaults {
  readonly #options: KillerOptions;
  readonly #underWay = new Map<string, Promise<void>>();
  #restores = 0;

  constructor(options: KillerOptions) {
    this.#options = options;
  }

  /** Begins a fault, unless one of its name is under way. */
  #begin(name: string, work: () => Promise<void>): void {
    if (this.#underWay.has(name)) return;
    const ended = work().finally(() => this.#underWay.delete(name));
    // It is awaited at the end of the run.
    ended.catch(() => undefined);
    this.#underWay.set(name, ended);
  }

  drain(drained: Drained, which: number, share: number): void {
    const { log, simulated } = this.#options;
    const node = drained === 'real' ? REAL_NODE : (simulated[Math.floor(which * simulated.length)] ?? REAL_NODE);
    this.#begin(`drain of ${node}`, async () => {
      const fault = log.fault(`${drained} node`, 'drained');
      await drainNode(this.#options, node, share * CLOSED);
      fault.readyAt = performance.now();
    });
  }

  restore({ policy, order }: Restore, share: number): void {
    const { log, broken } = this.#options;
    this.#begin('restore', async () => {
      this.#restores += 1;
      log.fault(`disk with policy ${policy}`, `restored, ${order}`);
      broken.push(
        ...(await restore(this.#options, `restored-${this.#restores}`, { policy, order, pause: share * CLOSED })),
      );
    });
  }

  async ended(): Promise<void> {
    await Promise.all(this.#underWay.values());
  }
}

/** Makes faults at random until `stopping` aborts, and starts again what Kubernetes does not. */
export async function killAtRandom(options: KillerOptions): Promise<void> {
  const { random, stopping } = options;
  const long = new LongFaults(options);
  while (!stopping.aborted) {
    const wait = BETWEEN[0] + random() * (BETWEEN[1] - BETWEEN[0]);
    await delay(wait, undefined, { signal: stopping }).catch(() => undefined);
    if (stopping.aborted) break;
    const victim = chooseVictim(random);
    // Drawn for every victim, so that the seed alone decides what comes next.
    const [which, share] = [random(), random()];
    if ('program' in victim) await killProgram(options, victim.program, share * AWAY);
    else if ('role' in victim) await killPod(options, victim, which);
    else if ('pod' in victim) await forceDelete(options, which);
    else if ('drained' in victim) long.drain(victim.drained, which, share);
    else long.restore(victim, share);
  }
  await long.ended();
}

/** An administrator deletes the pod of an instance by force, while nobody knows what its program does. */
async function forceDelete(options: KillerOptions, which: number): Promise<void> {
  const { client, log, accepted } = options;
  // Nothing is deleted while the API server is down.
  const pods = await podsOfInstances(options).catch(() => []);
  const pod = pods[Math.floor(which * pods.length)];
  if (pod === undefined) return;
  log.fault('pod of an instance', 'deleted by force');
  accepted.disturbed.add(pod.metadata.uid ?? '');
  await client.delete(PODS, pod.metadata, { gracePeriodSeconds: 0 }).catch(() => undefined);
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
  const kill = log.fault(program === 'kubelet' ? 'kubelet' : 'API server', how);
  await killWhole(cluster.initPid, pid);
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
      log.fault(`${role} pod`, 'deleted');
      // Nothing is deleted while the API server is down.
      await client.delete(PODS, pod.metadata).catch(() => undefined);
      return;
    }
  }
  const found = await replicasOf(cluster.initPid, role);
  const pid = pick(found);
  // All replicas wait for their restart, so there is nothing to kill.
  if (pid === undefined) return;
  log.fault(`${role} pod`, 'killed');
  await end(cluster.initPid, pid);
}
