import { expect, test } from 'vitest';
import { PodChecks } from '../../../src/controllers/gpu-instance/pod-checks.ts';
import type { Pod } from '../../../src/kube/types.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';
import { startedPod } from '../../support/instance-world.ts';

const pod = (name: string, namespace = 'default'): Pod => startedPod({}, { name, namespace, uid: `uid-${name}` });

test('a check runs beside its caller, and wakes the key when its result has changed', async () => {
  const clock = fakeClock();
  const woken: string[] = [];
  const answers = [false, false, true];
  let checks = 0;
  const logins = new PodChecks({ check: () => Promise.resolve(answers[checks++] ?? true), pauseMs: 1_000, clock });
  logins.source.start((key) => woken.push(key));
  expect(logins.last('k', pod('a'))).toBeUndefined();
  await settle();
  expect([logins.last('k', pod('a')), checks, woken.length]).toEqual([false, 1, 1]);
  clock.stall(1_000);
  logins.last('k', pod('a'));
  await settle();
  expect([logins.last('k', pod('a')), checks, woken.length]).toEqual([false, 2, 1]);
  clock.stall(1_000);
  logins.last('k', pod('a'));
  await settle();
  expect([logins.last('k', pod('a')), checks, woken.length]).toEqual([true, 3, 2]);
});

test('another pod under the same key is checked from the start', async () => {
  const logins = new PodChecks({ check: () => Promise.resolve(true), pauseMs: 1_000, clock: fakeClock() });
  logins.last('k', pod('a'));
  await settle();
  expect(logins.last('k', pod('a'))).toBe(true);
  expect(logins.last('k', pod('b'))).toBeUndefined();
});

test('a tenant whose pods never answer holds up its own looks alone', async () => {
  const seen: string[] = [];
  const never = new Promise<boolean>(() => undefined);
  const logins = new PodChecks({
    check: ({ metadata }) => {
      seen.push(metadata.namespace ?? '');
      return metadata.namespace === 'slow' ? never : Promise.resolve(true);
    },
    pauseMs: 1_000,
    clock: fakeClock(),
  });
  for (let index = 0; index < 40; index += 1) logins.last(`slow/${index}`, pod(`s-${index}`, 'slow'));
  logins.last('other/a', pod('a', 'other'));
  await settle();
  expect(seen.filter((namespace) => namespace === 'slow')).toHaveLength(8);
  expect(logins.last('other/a', pod('a', 'other'))).toBe(true);
});

test('a caller may ask sooner or later than usual, and look without asking', async () => {
  const clock = fakeClock();
  let checks = 0;
  const monitors = new PodChecks({ check: () => Promise.resolve((checks += 1)), pauseMs: 1_000, clock });
  expect(monitors.known('k', pod('a'))).toBeUndefined();
  monitors.last('k', pod('a'));
  await settle();
  clock.stall(5_000);
  expect([monitors.last('k', pod('a'), 10_000), monitors.known('k', pod('a'))]).toEqual([1, 1]);
  await settle();
  expect(checks).toBe(1);
  monitors.last('k', pod('a'), 5_000);
  await settle();
  expect([monitors.known('k', pod('a')), monitors.known('k', pod('b'))]).toEqual([2, undefined]);
});
