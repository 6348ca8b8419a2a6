import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { LEASES } from '../../../src/kube/types.ts';
import { Election } from '../../../src/runtime/lease.ts';
import { type FaultProxy, faultProxy } from '../../support/fault-proxy/proxy.ts';
import { scaledClock } from '../../support/scaled-clock.ts';
import { plainConnection, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

const NAME = 'berth-controller';

/** A candidate behind a network of its own; its 8 s of lease take 1.6. */
async function candidate(identity: string, namespace: string, proxy: FaultProxy) {
  const clock = scaledClock(5);
  const client = createKubeClient(plainConnection(proxy.server), { clock });
  const stop = new AbortController();
  const abort = new AbortController();
  let leading = false;
  const log = pino({ level: 'silent' });
  const election = new Election({
    client,
    namespace,
    name: NAME,
    identity,
    clock,
    random: Math.random,
    log,
    mayRelease: () => true,
  });
  const done = election.run({ stop: stop.signal, abort: abort.signal }, async (signals) => {
    leading = true;
    await new Promise<void>((resolve) => {
      for (const signal of [signals.stop, signals.abort]) signal.addEventListener('abort', () => resolve());
    });
    leading = false;
  });
  return {
    identity,
    proxy,
    done,
    get leading() {
      return leading;
    },
    async stop() {
      stop.abort();
      const outcome = await done;
      await client.close();
      return outcome;
    },
  };
}

test('of three replicas one leads; when it is cut off another takes over, and never two at a time', async () => {
  await using space = await testNamespace();
  await using first = await faultProxy(space.connection);
  await using second = await faultProxy(space.connection);
  await using third = await faultProxy(space.connection);
  const all = await Promise.all(
    [first, second, third].map((proxy, index) => candidate(`replica-${index}`, space.name, proxy)),
  );
  let most = 0;
  const watchdog = setInterval(() => {
    most = Math.max(most, all.filter(({ leading }) => leading).length);
  }, 2);

  const one = await waitFor('a first leader', () => all.find(({ leading }) => leading));
  const lease = await space.client.get(LEASES, { namespace: space.name, name: NAME });
  expect(lease.spec?.renewTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  one.proxy.setDown(true);
  await waitFor('the first leader to stand by', () => !one.leading);
  const two = await waitFor('a second leader', () => all.find(({ leading }) => leading));
  expect(two.identity).not.toBe(one.identity);

  expect(await two.stop()).toBe('stopped');
  const three = await waitFor('a third leader', () => all.find(({ leading }) => leading));
  expect([one.identity, two.identity]).not.toContain(three.identity);
  const after = await space.client.get(LEASES, { namespace: space.name, name: NAME });
  expect(after.spec?.leaseTransitions).toBeGreaterThanOrEqual(2);

  clearInterval(watchdog);
  expect(most).toBe(1);
  for (const each of all) await each.stop();
});
