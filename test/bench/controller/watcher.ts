import { pino } from 'pino';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { Informer } from '../../../src/kube/watch/reflector.ts';
import { type Pod, PODS } from '../../../src/kube/types.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';

/** When things about one name were first seen, milliseconds of performance.now(). */
export interface Seen {
  pod: Map<string, number>;
  podRunning: Map<string, number>;
  ready: Map<string, number>;
  claimed: Map<string, number>;
}

/** Notes when pods appear and run, and when instances have a place and are ready; pods of instances go under the instance's name. */
export async function watchNamespace(client: KubeClient, namespace: string, signal: AbortSignal): Promise<Seen> {
  const seen: Seen = { pod: new Map(), podRunning: new Map(), ready: new Map(), claimed: new Map() };
  const shared = { client, namespace, clock: systemClock(), random: Math.random, log: pino({ level: 'silent' }) };
  const first = (map: Map<string, number>, name: string): void => {
    if (!map.has(name)) map.set(name, performance.now());
  };
  const pods = new Informer<Pod>({ ...shared, type: PODS });
  pods.store.onChange(({ after }) => {
    if (after === undefined) return;
    const name = after.metadata.labels?.['berth.dev/instance'] ?? after.metadata.name;
    first(seen.pod, name);
    if (after.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')) {
      first(seen.podRunning, name);
    }
  });
  const instances = new Informer<GpuInstance>({ ...shared, type: GPU_INSTANCES });
  instances.store.onChange(({ key, after }) => {
    const isReady = after?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
    const name = key.slice(key.indexOf('/') + 1);
    if (after?.status?.claim !== undefined) first(seen.claimed, name);
    if (isReady) first(seen.ready, name);
  });
  void pods.run(signal);
  void instances.run(signal);
  await Promise.all([pods.store.synced, instances.store.synced]);
  return seen;
}
