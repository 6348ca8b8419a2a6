import { expect, test } from 'vitest';
import { mayRun } from '../../../src/inventory/nodes/pod-end.ts';
import type { Node, Pod } from '../../../src/kube/types.ts';
import { inventoryOf, gpuNode, gpuPod, gpuPool } from '../../support/inventory-world.ts';

type Status = NonNullable<Pod['status']>;
type State = NonNullable<NonNullable<Status['containerStatuses']>[number]['state']>;

const DELETED_AT = '2026-01-01T00:00:00Z';
const RUNNING: State = { running: { startedAt: DELETED_AT } };
const TERMINATED: State = { terminated: { exitCode: 137 } };
const WAITING: State = { waiting: { reason: 'ContainerCreating' } };
const BY_FORCE = { deletionTimestamp: DELETED_AT, deletionGracePeriodSeconds: 0 };
const GRACEFULLY = { deletionTimestamp: DELETED_AT, deletionGracePeriodSeconds: 30 };
const COLLECTED = [{ type: 'DisruptionTarget', status: 'True', reason: 'DeletionByPodGC' }];
const letGo = (hasSandbox: string) => [
  ...COLLECTED,
  { type: 'ContainersReady', status: 'False', reason: 'PodFailed' },
  { type: 'PodReadyToStartContainers', status: hasSandbox },
];
const UNREACHABLE = [{ type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' }];

function containers(...states: State[]): NonNullable<Status['containerStatuses']> {
  return states.map((state, index) => {
    return { name: `c${index}`, image: '', imageID: '', ready: false, restartCount: 0, state };
  });
}

function pod(status: Status, metadata: Partial<Pod['metadata']> = {}, node = 'n'): Pod {
  const made = gpuPod('one-1', node === '' ? undefined : node);
  return { ...made, metadata: { ...made.metadata, ...metadata }, status };
}

const node = gpuNode('n');
const silent = gpuNode('n', { ready: false });
const OUT_OF_SERVICE = [{ key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' }];
const simulated = gpuNode('n', { labels: { 'berth.dev/simulated': 'true' } });

const running: Status = { phase: 'Running', containerStatuses: containers(RUNNING) };
const crashed: Status = { phase: 'Running', containerStatuses: containers(TERMINATED) };
const ended: Status = { phase: 'Failed', containerStatuses: containers(TERMINATED) };
const collected: Status = { phase: 'Failed', conditions: COLLECTED, containerStatuses: containers(RUNNING) };

test.each<[title: string, pod: Pod, node: Node | undefined]>([
  ['it runs', pod(running), node],
  ['it is not bound yet', pod({ phase: 'Pending' }, {}, ''), node],
  ['it is being deleted', pod(running, GRACEFULLY), node],
  ['it was deleted by force', pod(running, BY_FORCE), node],
  ['it was deleted by force between two starts of its container', pod(crashed, BY_FORCE), node],
  ['it was deleted by force before the kubelet spoke of it', pod({ phase: 'Pending' }, BY_FORCE), node],
  ['it was deleted by force on a silent node', pod(running, BY_FORCE), silent],
  ['the taint manager deleted it', pod({ ...running, conditions: UNREACHABLE }, GRACEFULLY), silent],
  [
    'the silent node is back, and its kubelet is still at it',
    pod({ ...running, conditions: UNREACHABLE }, BY_FORCE),
    node,
  ],
  ['the garbage collector says Failed, and the node is there', pod(collected, BY_FORCE), node],
  [
    'the garbage collector says Failed of a container that was about to start',
    pod({ ...collected, containerStatuses: containers(WAITING) }, BY_FORCE),
    node,
  ],
  [
    'the garbage collector says Failed of a pod that the kubelet has not spoken of',
    pod({ phase: 'Failed', conditions: COLLECTED }, BY_FORCE),
    node,
  ],
  [
    'the garbage collector says Failed, and the kubelet has not taken the sandbox away yet',
    pod({ ...collected, conditions: letGo('True'), containerStatuses: containers(WAITING) }, BY_FORCE),
    node,
  ],
  [
    'the garbage collector says Failed, and the kubelet that is back that a container runs',
    pod({ ...collected, conditions: letGo('False') }, BY_FORCE),
    node,
  ],
  ['a client wrote Failed', pod({ ...running, phase: 'Failed' }), node],
  ['an init container runs', pod({ ...ended, initContainerStatuses: containers(RUNNING) }, BY_FORCE), node],
  ['another container runs', pod({ ...ended, containerStatuses: containers(TERMINATED, RUNNING) }, BY_FORCE), node],
  ['the node is gone, and nobody deletes the pod yet', pod(running), undefined],
  [
    'the taint of a node that answers says out of service',
    pod(running, BY_FORCE),
    gpuNode('n', { taints: OUT_OF_SERVICE }),
  ],
  ['a simulated node has it, and it may end in peace', pod(running, GRACEFULLY), simulated],
])('a pod may run: %s', (_title, one, on) => {
  expect(mayRun(one, on)).toBe(true);
});

test.each<[title: string, pod: Pod, node: Node | undefined]>([
  ['its containers have ended', pod(ended), node],
  ['its containers have ended on a node that fell silent since', pod(ended, GRACEFULLY), silent],
  ['its program ended well', pod({ ...ended, phase: 'Succeeded' }), node],
  ['the node pressed for memory evicted it', pod({ ...ended, reason: 'Evicted' }), node],
  ['the kubelet refused it', pod({ phase: 'Failed', reason: 'OutOfnvidia.com/gpu' }), node],
  ['it ended before its container was there', pod({ phase: 'Failed', containerStatuses: containers(WAITING) }), node],
  [
    'the kubelet is back and ended what the garbage collector had failed',
    pod({ ...ended, conditions: COLLECTED }),
    node,
  ],
  [
    'the kubelet is back and has no sandbox of what never ran, and the garbage collector had failed',
    pod({ ...collected, conditions: letGo('False'), containerStatuses: containers(WAITING) }, BY_FORCE),
    node,
  ],
  ['it was deleted without a node', pod({ phase: 'Pending' }, BY_FORCE, ''), node],
  ['it was deleted and its node is gone', pod(running, BY_FORCE), undefined],
  [
    'it was deleted and its node is out of service',
    pod(running, BY_FORCE),
    gpuNode('n', { ready: false, taints: OUT_OF_SERVICE }),
  ],
  ['a simulated node deleted it', pod(running, BY_FORCE), simulated],
])('a pod does not run: %s', (_title, one, on) => {
  expect(mayRun(one, on)).toBe(false);
});

test('a pod counts on its node until its kubelet has ended it', () => {
  const one = pod(running, { ...BY_FORCE, resourceVersion: '101' });
  const { inventory, caches } = inventoryOf({ nodes: [node], pods: [one], pools: [gpuPool('default')] });
  const used = (): number | undefined => inventory.viewOf('n')?.used['nvidia.com/gpu'];
  expect(used()).toBe(1);
  caches.pods.upsert(pod(collected, { ...BY_FORCE, resourceVersion: '102' }));
  expect(used()).toBe(1);
  caches.pods.upsert(pod(ended, { ...BY_FORCE, resourceVersion: '103' }));
  expect(used() ?? 0).toBe(0);
});
