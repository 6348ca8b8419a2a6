import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/lib/clock.ts';
import { EventRecorder } from '../../../src/kube/events.ts';
import { Informer } from '../../../src/kube/watch/reflector.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { EVENTS, keyOf, refOf } from '../../../src/kube/types.ts';
import { Controller } from '../../../src/runtime/controller.ts';
import { Fence } from '../../../src/runtime/fence.ts';
import { storeSource } from '../../../src/runtime/source.ts';
import { faultProxy } from '../../support/fault-proxy/proxy.ts';
import { CONFIG_MAPS, type ConfigMap, plainConnection, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

/** A controller that keeps a copy of each config map labelled `role: root`, with its value in capitals. */
async function copier() {
  const space = await testNamespace();
  const proxy = await faultProxy(space.connection);
  const clock = systemClock();
  const log = pino({ level: 'silent' });
  const client = createKubeClient(plainConnection(proxy.server), { clock });
  const informer = new Informer<ConfigMap>({
    client,
    type: CONFIG_MAPS,
    namespace: space.name,
    labelSelector: 'role',
    clock,
    random: Math.random,
    log,
  });
  const { store } = informer;
  const fence = new Fence(clock, log);
  let reconciles = 0;
  const controller = new Controller({
    name: 'copier',
    sources: [storeSource(store, (object) => [keyOf(object).replace(/-copy$/, '')])],
    async reconcile(key, { signal }) {
      reconciles += 1;
      const root = store.get(key);
      const current = store.get(`${key}-copy`);
      const { name, namespace } = refOf(key);
      if (!root) {
        if (!current) return;
        await client.delete(CONFIG_MAPS, current.metadata, { uid: current.metadata.uid ?? '', signal });
        fence.deleted(key, store, current);
        return;
      }
      const value = root.data?.['value']?.toUpperCase() ?? '';
      if (current?.data?.['value'] === value) return;
      const metadata = {
        name: `${name}-copy`,
        ...(namespace !== undefined && { namespace }),
        labels: { role: 'copy' },
      };
      const desired: ConfigMap = { metadata, data: { value } };
      const options = { fieldManager: 'copier', force: true, signal };
      fence.wrote(key, store, await client.apply(CONFIG_MAPS, desired, options));
    },
    concurrency: 8,
    timeoutMs: 10_000,
    fence,
    clock,
    log,
  });
  const stop = new AbortController();
  const running = [
    informer.run(stop.signal),
    controller.run({ stop: stop.signal, abort: new AbortController().signal }),
  ];
  return {
    ...space,
    proxy,
    store,
    get reconciles() {
      return reconciles;
    },
    get writes() {
      return proxy.requests.filter(({ method }) => method !== 'GET').length;
    },
    root: (name: string, value: string) =>
      space.client.apply(
        CONFIG_MAPS,
        { metadata: { name, namespace: space.name, labels: { role: 'root' } }, data: { value } } as ConfigMap,
        { fieldManager: 'user', force: true },
      ),
    copy: (name: string) => store.get(`${space.name}/${name}-copy`)?.data?.['value'],
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all(running);
      await client.close();
      await proxy[Symbol.asyncDispose]();
      await space[Symbol.asyncDispose]();
    },
  };
}

test('one write for each copy, no write at rest, and what is taken away comes back once', async () => {
  await using world = await copier();
  const names = Array.from({ length: 40 }, (_, index) => `r-${index}`);
  await Promise.all(names.map((name) => world.root(name, name)));
  await waitFor('all copies', () => names.every((name) => world.copy(name) === name.toUpperCase()));
  expect(world.writes).toBe(40);

  const { reconciles } = world;
  // Rest can only be seen by looking for a while.
  await delay(1_000);
  expect(world.writes).toBe(40);
  expect(world.reconciles - reconciles).toBeLessThanOrEqual(40);

  await world.client.delete(CONFIG_MAPS, { namespace: world.name, name: 'r-7-copy' });
  await waitFor('the copy to come back', () => world.writes === 41 && world.copy('r-7') === 'R-7');

  await world.root('r-8', 'changed');
  await waitFor('the change', () => world.copy('r-8') === 'CHANGED');
  await world.client.delete(CONFIG_MAPS, { namespace: world.name, name: 'r-9' });
  await waitFor('the copy to go', () => world.copy('r-9') === undefined);
  await delay(500);
  expect(world.writes).toBe(43);
});

test('converges through an API server that goes away in the middle', async () => {
  await using world = await copier();
  const names = Array.from({ length: 20 }, (_, index) => `r-${index}`);
  for (const [index, name] of names.entries()) {
    if (index === 10) world.proxy.setDown(true);
    await world.root(name, 'x');
  }
  world.proxy.setDown(false);
  await waitFor('all copies', () => names.every((name) => world.copy(name) === 'X'), 30_000);
});

test('events count up in the API server', async () => {
  await using space = await testNamespace();
  const { client, name: namespace } = space;
  const log = pino({ level: 'silent' });
  const recorder = new EventRecorder({ client, component: 'berth', clock: systemClock(), log });
  const object = await client.create(CONFIG_MAPS, { metadata: { name: 'a', namespace } });
  for (let index = 0; index < 3; index += 1) {
    recorder.record(CONFIG_MAPS, object, { type: 'Warning', reason: 'Tested', message: 'It was tested.' });
  }
  const stop = new AbortController();
  stop.abort();
  await recorder.run(stop.signal);
  const { items } = await client.list(EVENTS, { namespace, fieldSelector: 'involvedObject.name=a' });
  expect(items).toMatchObject([{ count: 3, reason: 'Tested', type: 'Warning', source: { component: 'berth' } }]);
});
