import { pino } from 'pino';
import { expect } from 'vitest';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { type Pod, PODS } from '../../src/kube/types.ts';
import { Informer } from '../../src/kube/watch/reflector.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { INSTANCE_LABEL } from '../../src/resources/pod/owner.ts';
import { waitFor } from './wait-for.ts';

interface Displacement {
  client: KubeClient;
  namespace: string;
  /** The instance that others end for. */
  urgent: string;
  /** Instances whose first start runs. */
  others: readonly string[];
  /** Asks for the urgent one. */
  ask: () => Promise<unknown>;
}

/** The pod of an instance whose first start this is. */
export function firstPod(items: Iterable<Pod>, id: string): Pod | undefined {
  return [...items].find(({ metadata }) => metadata.labels?.[INSTANCE_LABEL] === id);
}

/**
 * Which instances end for one that is asked for, and the milliseconds from the end of the last program to the devices of
 * the new pod, as a watch tells of both.
 */
export async function boundAfter({ client, namespace, urgent, others, ask }: Displacement) {
  const log = pino({ level: 'silent' });
  const clock = systemClock();
  const informer = new Informer({ client, type: PODS, namespace, clock, random: Math.random, log });
  const stop = new AbortController();
  const watching = informer.run(stop.signal);
  const { store } = informer;
  await store.synced;
  const running = (id: string): boolean => firstPod(store.values(), id)?.status?.phase === 'Running';
  await waitFor('the watch to tell of their programs', () => others.every(running));
  const ended = new Set<string>();
  let [endedAt, boundAt] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  store.onChange(() => {
    if (Number.isFinite(boundAt)) return;
    const now = performance.now();
    for (const id of others) {
      if (running(id) || ended.has(id)) continue;
      ended.add(id);
      endedAt = now;
    }
    if (firstPod(store.values(), urgent)?.spec?.nodeName !== undefined) boundAt = now;
  });
  await ask();
  await waitFor(`a node for ${urgent}`, () => Number.isFinite(boundAt));
  stop.abort();
  await watching;
  expect(endedAt).toBeLessThan(boundAt);
  return { ended: [...ended].toSorted(), ms: boundAt - endedAt };
}
