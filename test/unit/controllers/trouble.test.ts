import { expect, test } from 'vitest';
import { checkTrouble } from '../../../src/controllers/gpu-instance/act/check-pod.ts';
import { readTrouble } from '../../../src/controllers/gpu-instance/act/read-trouble.ts';
import type { Run } from '../../../src/controllers/gpu-instance/act/run.ts';
import { nextLook } from '../../../src/controllers/gpu-instance/decide/next-look.ts';
import { planNext } from '../../../src/controllers/gpu-instance/decide/plan.ts';
import { statusOf } from '../../../src/controllers/gpu-instance/decide/status/status.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { findCondition } from '../../../src/kube/conditions.ts';
import type { Event } from '../../../src/kube/types.ts';
import { EARLIER, observed, SCHEDULED, startedPod } from '../../support/instance-world.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

const NOT_SET_UP = { type: 'PodReadyToStartContainers', status: 'False', lastTransitionTime: EARLIER };
const CREATING = {
  name: 'main',
  image: 'debian:12',
  imageID: '',
  ready: false,
  restartCount: 0,
  state: { waiting: { reason: 'ContainerCreating' } },
};
const POD = startedPod({ phase: 'Pending', conditions: [SCHEDULED, NOT_SET_UP], containerStatuses: [CREATING] });
const SAID = 'FailedMount: MountVolume.SetUp failed for volume "disk": no such device';
const at = (second: number): number => Date.parse(EARLIER) + second * 1000;

function seen(second: number, trouble?: string) {
  const claim = { ...claimOn('n'), grantedAt: EARLIER };
  const instance = gpuInstance('one', {}, { claim, incarnation: 1, podName: 'one-1', runtype: 'ssh' });
  return observed({ instance, pod: POD, now: at(second), trouble });
}

function event(reason: string, message: string, time: object): Event {
  return { metadata: { name: reason }, involvedObject: {}, reason, message, ...time };
}

test('the newest warning about the pod is read, whatever time its writer names', async () => {
  const asked: unknown[] = [];
  const items = [
    event('FailedScheduling', 'no', { firstTimestamp: '2026-01-01T00:00:05Z' }),
    event('FailedMount', 'newest', { lastTimestamp: '2026-01-01T00:00:09Z' }),
    event('FailedAttachVolume', 'older', { eventTime: '2026-01-01T00:00:07.000000Z' }),
  ];
  const client = {
    list: (_type: unknown, { namespace, fieldSelector }: { namespace: string; fieldSelector: string }) => {
      asked.push([namespace, fieldSelector]);
      return Promise.resolve({ items, resourceVersion: '1' });
    },
  } as unknown as KubeClient;
  expect(await readTrouble(client, POD)).toBe('FailedMount: newest');
  expect(asked).toEqual([['default', 'involvedObject.uid=pod-1,type=Warning']]);
});

test('where they cannot be read the start goes on without them', async () => {
  const list = (): Promise<never> => Promise.reject(new Error('no'));
  expect(await readTrouble({ list }, POD)).toBeUndefined();
});

test('the events are asked for once a pod takes long to be set up, and no longer than that', () => {
  const run = { deps: { troubles: { last: () => SAID } }, key: 'default/one' } as unknown as Run;
  expect(checkTrouble(run, seen(14))).toBeUndefined();
  expect(checkTrouble(run, seen(15))).toBe(SAID);
  const set = startedPod({ conditions: [SCHEDULED, { ...NOT_SET_UP, status: 'True' }], containerStatuses: [CREATING] });
  expect(checkTrouble(run, { ...seen(15), pod: set })).toBeUndefined();
  const look = { step: { do: 'observe' }, writeAfterMs: 0, repairAfterMs: undefined, isHidden: false } as const;
  expect(nextLook(seen(1), look)).toEqual({ requeueAfterMs: 15_000 });
});

test('the instance says while it starts what its node says, and so does the end of the start', () => {
  const { conditions } = statusOf(seen(60, SAID), { host: '', port: 22 });
  expect(findCondition(conditions, 'Ready')).toMatchObject({
    reason: 'Starting',
    message: `Node n is still setting up the pod. ${SAID}`,
  });
  expect(planNext(seen(300, SAID))).toMatchObject({
    do: 'end',
    ending: {
      reason: 'ContainerNotCreated',
      message: expect.stringMatching(/at fault\. FailedMount: .* no such device$/),
    },
  });
});
