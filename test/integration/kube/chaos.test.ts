import fc from 'fast-check';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { Informer } from '../../../src/kube/watch/reflector.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { type FaultProxy, faultProxy } from '../../support/fault-proxy/proxy.ts';
import { refuseNext } from '../../support/fault-proxy/faults.ts';
import { scaledClock } from '../../support/scaled-clock.ts';
import { CONFIG_MAPS, type ConfigMap, plainConnection, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

const NAMES = ['a', 'b', 'c'] as const;
const RUNS = 10;

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('write' as const), name: fc.constantFrom(...NAMES) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('delete' as const), name: fc.constantFrom(...NAMES) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('lag' as const), name: fc.constantFrom(...NAMES) }) },
  // Lets the reflector get into what was broken: on its clock a second and a half.
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('pause' as const) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('fault' as const),
      fault: fc.constantFrom('reset', 'end', 'expire', 'expire', 'down', 'up', 'silent', 'pieces', 'refuse'),
    }),
  },
);

function breakIt(fault: string, proxy: FaultProxy): void {
  if (fault === 'reset' || fault === 'end') proxy.cutWatches(fault);
  else if (fault === 'expire') proxy.expireWatches();
  else if (fault === 'down' || fault === 'up') proxy.setDown(fault === 'down');
  else if (fault === 'silent') proxy.faults.silent = () => true;
  else if (fault === 'pieces') proxy.faults.pieceBytes = 5;
  else proxy.faults.refuse = refuseNext(3, { status: 429, reason: 'TooManyRequests', retryAfter: 1 }, () => true);
}

function heal(proxy: FaultProxy): void {
  proxy.setDown(false);
  proxy.catchUp();
  Object.assign(proxy.faults, { refuse: undefined, silent: undefined, pieceBytes: 0 });
  proxy.cutWatches('reset');
}

function show(objects: Iterable<ConfigMap>): string {
  return [...objects]
    .filter(({ metadata }) => NAMES.some((name) => name === metadata.name))
    .map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`)
    .toSorted()
    .join(' ');
}

test('whatever breaks in whatever order, the cache never goes back and ends equal to the API server', async () => {
  await using space = await testNamespace();
  const { client: direct, name: namespace } = space;
  await using proxy = await faultProxy(space.connection);
  const clock = scaledClock(50);
  const client = createKubeClient(plainConnection(proxy.server), { clock });
  const log = pino({ level: 'silent' });
  const path = `/api/v1/namespaces/${namespace}/configmaps`;

  const history = fc.array(step, { minLength: 15, maxLength: 40 });
  const property = fc.asyncProperty(history, async (steps) => {
    heal(proxy);
    const informer = new Informer<ConfigMap>({
      client,
      type: CONFIG_MAPS,
      namespace,
      clock,
      random: Math.random,
      log,
    });
    const stop = new AbortController();
    const done = informer.run(stop.signal);
    await informer.store.synced;
    const wentBack: string[] = [];
    let newest = 0n;
    informer.store.onChange(() => {
      const version = BigInt(informer.store.resourceVersion);
      // Noted, not expected here: the cache survives listeners that throw.
      if (version < newest) wentBack.push(`${newest} to ${version}`);
      newest = version;
    });
    let value = 0;
    const write = async (name: string): Promise<void> => {
      value += 1;
      const object = { metadata: { name, namespace }, data: { value: String(value) } };
      await direct.apply(CONFIG_MAPS, object, { fieldManager: 'writer', force: true });
    };
    for (const one of steps) {
      if (one.kind === 'pause') {
        await clock.sleep(1_500);
      } else if (one.kind === 'fault') {
        breakIt(one.fault, proxy);
      } else if (one.kind === 'delete') {
        await direct.delete(CONFIG_MAPS, { namespace, name: one.name });
      } else if (one.kind === 'lag') {
        // What was seen after the lists were taken is missing in them.
        await proxy.fallBehind(path);
        await write(one.name);
        await clock.sleep(500);
        proxy.expireWatches();
        await clock.sleep(2_000);
      } else {
        await write(one.name);
      }
    }
    heal(proxy);
    await waitFor('the cache to equal the API server', async () => {
      const { items } = await direct.list(CONFIG_MAPS, { namespace });
      return informer.store.hasSynced && show(items) === show(informer.store.values());
    });
    stop.abort();
    await done;
    expect(wentBack).toEqual([]);
  });
  // Prints its seed and the shortest history when it fails.
  await fc.assert(property, { numRuns: RUNS, interruptAfterTimeLimit: 45_000 });
  await client.close();
});
