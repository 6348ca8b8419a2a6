import { describe, expect, test } from 'vitest';
import { checkTrouble } from '../../../src/controllers/gpu-instance/act/check-pod.ts';
import { readTrouble } from '../../../src/controllers/gpu-instance/act/read-trouble.ts';
import type { Run } from '../../../src/controllers/gpu-instance/act/run.ts';
import type { Observed } from '../../../src/controllers/gpu-instance/decide/observed.ts';
import { nextLook } from '../../../src/controllers/gpu-instance/decide/next-look.ts';
import { planNext } from '../../../src/controllers/gpu-instance/decide/plan.ts';
import { statusOf } from '../../../src/controllers/gpu-instance/decide/status/status.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { findCondition } from '../../../src/kube/conditions.ts';
import type { Event, Pod } from '../../../src/kube/types.ts';
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

test('the newest warning about the pod as a whole is read, whatever time its writer names', async () => {
  const asked: unknown[] = [];
  const items = [
    event('FailedScheduling', 'no', { firstTimestamp: '2026-01-01T00:00:05Z' }),
    event('FailedMount', 'newest', { lastTimestamp: '2026-01-01T00:00:09Z' }),
    {
      ...event('Failed', 'Failed to pull image "10.0.0.5:8080/x": secrets', { lastTimestamp: '2026-01-01T00:01:00Z' }),
      involvedObject: { fieldPath: 'spec.containers{main}' },
    },
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

describe('a disk that nobody provisions', () => {
  const UNBOUND = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', lastTransitionTime: EARLIER };
  const IMMEDIATE = '0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.';
  const NO_CLASS = 'ProvisioningFailed: storageclass.storage.k8s.io "fast" not found';
  function unbound(conditions: object[]): Pod {
    const { metadata, spec, ...pod } = startedPod({ phase: 'Pending', conditions: conditions as never });
    const labels = { ...metadata.labels, 'berth.dev/instance': 'one' };
    return { ...pod, metadata: { ...metadata, labels }, spec: { containers: spec?.containers ?? [] } };
  }
  /** The scheduler has no word for a claim that waits for its first pod. */
  const pods = { 'at once': unbound([{ ...UNBOUND, message: IMMEDIATE }]), 'for its first pod': unbound([]) };
  const disk = { metadata: { name: 'one-disk' } };
  const bound = { metadata: { ...disk.metadata, annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } } };

  function waits(pod: Pod, second: number, over: Partial<Observed> = {}): Observed {
    const claim = { ...claimOn('n'), grantedAt: EARLIER };
    const status = { claim, incarnation: 1, podName: 'one-1', runtype: 'ssh' as const, diskPersistent: true };
    return observed({ instance: gpuInstance('one', {}, status), pod, disk, now: at(second), ...over });
  }

  test.each<[string, Event[], string | undefined]>([
    [
      'a warning comes first',
      [
        event('ProvisioningFailed', 'no such class', { type: 'Warning', lastTimestamp: '2026-01-01T00:00:01Z' }),
        event('ExternalProvisioning', 'Waiting for a volume', {
          type: 'Normal',
          lastTimestamp: '2026-01-01T00:00:09Z',
        }),
      ],
      'ProvisioningFailed: no such class',
    ],
    [
      'no provisioner answers',
      [
        event('ExternalProvisioning', 'Waiting for a volume', {
          type: 'Normal',
          lastTimestamp: '2026-01-01T00:00:09Z',
        }),
        event('WaitForFirstConsumer', 'waiting for first consumer', {
          type: 'Normal',
          lastTimestamp: '2026-01-01T00:00:10Z',
        }),
      ],
      'ExternalProvisioning: Waiting for a volume',
    ],
    [
      'the claim has no class',
      [event('FailedBinding', 'no storage class is set', { type: 'Normal' })],
      'FailedBinding: no storage class is set',
    ],
    [
      'nothing is wrong',
      [event('Provisioning', 'External provisioner is provisioning', { type: 'Normal' })],
      undefined,
    ],
  ])('is told by the Events of its claim: %s', async (_what, items, said) => {
    const asked: unknown[] = [];
    const client = {
      list: (_type: unknown, { namespace, fieldSelector }: { namespace: string; fieldSelector: string }) => {
        asked.push([namespace, fieldSelector]);
        return Promise.resolve({ items, resourceVersion: '1' });
      },
    } as unknown as KubeClient;
    const found = await readTrouble(client, pods['at once']);
    expect(found).toBe(said && `PersistentVolumeClaim one-disk: ${said}`);
    expect(asked).toEqual([['default', 'involvedObject.kind=PersistentVolumeClaim,involvedObject.name=one-disk']]);
  });

  test.each(Object.entries(pods))('is asked about while the pod has no node, %s', (_when, pod) => {
    const run = { deps: { troubles: { last: () => NO_CLASS } }, key: 'default/one' } as unknown as Run;
    expect(checkTrouble(run, waits(pod, 14))).toBeUndefined();
    expect(checkTrouble(run, waits(pod, 15))).toBe(NO_CLASS);
    expect(checkTrouble(run, waits(pod, 15, { disk: bound }))).toBeUndefined();
    const look = { step: { do: 'observe' }, writeAfterMs: 0, repairAfterMs: undefined, isHidden: false } as const;
    expect(nextLook(waits(pod, 1), look)).toEqual({ requeueAfterMs: 15_000 });
  });

  test.each(Object.entries(pods))('is what the instance says, and why the start ends, %s', (when, pod) => {
    const { conditions } = statusOf(waits(pod, 60, { trouble: NO_CLASS }), { host: '', port: 22 });
    expect(findCondition(conditions, 'Ready')).toMatchObject({
      reason: when === 'at once' ? 'Unschedulable' : 'Scheduling',
      message: `The disk is not provisioned yet. ${NO_CLASS}`,
    });
    expect(planNext(waits(pod, 179, { trouble: NO_CLASS })).do).toBe('observe');
    expect(planNext(waits(pod, 180, { trouble: NO_CLASS }))).toMatchObject({
      do: 'end',
      ending: {
        reason: 'PlaceLost',
        message: expect.stringMatching(
          /^The disk was not provisioned within 180 seconds: Prov.* not found\. .*StorageClass/,
        ),
      },
    });
  });
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
