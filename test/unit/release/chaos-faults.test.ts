import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { Accepted } from '../../chaos/accepted.ts';
import { drainNode } from '../../chaos/drain.ts';
import { saved } from '../../chaos/restore.ts';
import { lostOf } from '../../chaos/witness.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { NotFoundError } from '../../../src/kube/errors.ts';
import { type KubeObject, PERSISTENT_VOLUME_CLAIMS } from '../../../src/kube/types.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';

function instance(uid: string, reason: string): GpuInstance {
  const condition = { type: 'Ready', status: 'False', reason, message: 'why', lastTransitionTime: '' };
  return { metadata: { name: uid, uid }, spec: {}, status: { conditions: [condition] } } as unknown as GpuInstance;
}

test('an accepted instance may run and wait, and is lost when it is gone, over, or another', () => {
  const accepted = new Map([['u', 'a/u']]);
  for (const reason of ['Running', 'WaitingForCapacity', 'Preempted', 'Starting', 'NodeLost', 'StartLimit'])
    expect(lostOf(accepted, [instance('u', reason)])).toEqual([]);
  for (const reason of ['DiskLost', 'Stopped', 'Completed', 'Deleting', 'NoCapacity'])
    expect(lostOf(accepted, [instance('u', reason)])).toEqual([{ uid: 'u', text: `a/u is lost: ${reason}: why` }]);
  expect(lostOf(accepted, [instance('other', 'Running')])).toHaveLength(1);
});

test('a saved claim has its name, marks and volume, and neither uid, status nor the binding', () => {
  const annotations = { 'pv.kubernetes.io/bind-completed': 'yes', 'berth.dev/claim': 'u' };
  const metadata = {
    name: 'one-disk',
    namespace: 'a',
    uid: 'u',
    resourceVersion: '7',
    labels: { l: 'v' },
    annotations,
  };
  const claim = { metadata, spec: { volumeName: 'v' }, status: { phase: 'Bound' } } as KubeObject;
  expect(parse(saved(PERSISTENT_VOLUME_CLAIMS, claim))).toEqual({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'one-disk', namespace: 'a', labels: { l: 'v' }, annotations: { 'berth.dev/claim': 'u' } },
    spec: { volumeName: 'v' },
  });
});

test('a drain evicts the pods of its node alone, and opens the node again when the run ends', async () => {
  const pod = (name: string, nodeName: string, more: object = {}) => ({
    metadata: { namespace: 'a', name, uid: `uid-${name}`, ...more },
    spec: { nodeName },
  });
  const items = [pod('one', 'n'), pod('two', 'n'), pod('three', 'm'), pod('four', 'n', { deletionTimestamp: 'now' })];
  const done: string[] = [];
  const accepted = new Accepted();
  const client = {
    list: () => Promise.resolve({ items }),
    patch: (_type: unknown, _ref: unknown, body: object) => Promise.resolve(done.push(JSON.stringify(body))),
    raw: (_method: string, path: string) => {
      done.push(path);
      // It was known to be disturbed before it was evicted, and another had deleted it meanwhile.
      expect(accepted.disturbed.has('uid-one')).toBe(true);
      return Promise.reject(new NotFoundError({ message: 'gone', status: 404, reason: 'NotFound' }));
    },
  } as unknown as KubeClient;
  const common = { client, namespaces: ['a'], accepted, deadline: AbortSignal.timeout(10_000) };
  await drainNode({ ...common, stopping: AbortSignal.abort() }, 'n', 600_000);
  expect(done).toEqual([
    '{"spec":{"unschedulable":true}}',
    '/api/v1/namespaces/a/pods/one/eviction',
    '/api/v1/namespaces/a/pods/two/eviction',
    '{"spec":{"unschedulable":false}}',
  ]);
  expect([...accepted.disturbed]).toEqual(['uid-one', 'uid-two']);
});
