import { pino } from 'pino';
import { expect, test } from 'vitest';
import type { Run } from '../../../src/controllers/gpu-instance/act/run.ts';
import { readLiveView } from '../../../src/controllers/gpu-instance/act/live-view.ts';
import { mustBeCertain, type Step } from '../../../src/controllers/gpu-instance/decide/plan.ts';
import { NotFoundError } from '../../../src/kube/errors.ts';
import type { Pod } from '../../../src/kube/types.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { startedPod } from '../../support/instance-world.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';
import { recordingClient } from '../../support/recording-client.ts';

const GONE = new NotFoundError({ message: 'gone', status: 404, reason: 'NotFound' });
const CACHED = gpuInstance('one', {}, { claim: claimOn('n'), incarnation: 1, podName: 'one-1', podUid: 'pod-1' });
const EARLIER = startedPod({}, { name: 'one-0', uid: 'pod-0' });
const OWN = startedPod();

/** What is read when the API server has this instance and this pod, and the cache these pods. */
function view(live: GpuInstance | Error, pod: Pod | Error, cachedPods: readonly Pod[] = [EARLIER, OWN]) {
  const { client } = recordingClient([live, pod]);
  const context = { signal: new AbortController().signal, log: pino({ level: 'silent' }) };
  return readLiveView({ deps: { client }, key: 'default/one', context } as unknown as Run, CACHED, cachedPods);
}

test('the pod of the start comes from the API server, the others from the cache', async () => {
  const ending = startedPod({}, { deletionTimestamp: '2026-01-01T00:00:00Z' });
  expect(await view(CACHED, ending)).toEqual({ instance: CACHED, pods: [EARLIER, ending] });
});

test('a pod that the cache does not show is found', async () => {
  expect((await view(CACHED, OWN, []))?.pods).toEqual([OWN]);
});

test('a pod that only the cache has is gone', async () => {
  expect((await view(CACHED, GONE))?.pods).toEqual([EARLIER]);
});

test('a pod of that name that does not belong to the instance does not count', async () => {
  const foreign = startedPod({}, { uid: 'pod-9', annotations: {} });
  expect((await view(CACHED, foreign))?.pods).toEqual([EARLIER]);
});

test('an instance that is gone, or another one of its name, leaves nothing to do', async () => {
  const successor = { ...CACHED, metadata: { ...CACHED.metadata, uid: 'uid-two' } };
  expect([await view(GONE, GONE), await view(successor, OWN)]).toEqual([undefined, undefined]);
});

test('steps that look or wait need no certainty; steps that create, end or delete do', () => {
  const harmless: Step[] = [{ do: 'observe' }, { do: 'claim' }, { do: 'wait', until: 0 }];
  const final: Step[] = [{ do: 'createPod' }, { do: 'deletePods', pods: [] }, { do: 'deleteInstance' }];
  expect([...harmless, ...final].map(mustBeCertain)).toEqual([false, false, false, true, true, true]);
});
