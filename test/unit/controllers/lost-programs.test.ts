import { describe, expect, test } from 'vitest';
import { planNext } from '../../../src/controllers/gpu-instance/decide/plan.ts';
import { endedStatus, releasedStatus } from '../../../src/controllers/gpu-instance/decide/transitions.ts';
import { endingOf } from '../../../src/controllers/gpu-instance/decide/endings.ts';
import type { Node, Pod } from '../../../src/kube/types.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { POD_FINALIZER } from '../../../src/resources/pod/pod-finalizer.ts';
import { EARLIER, NOW, observed, readyNode, SCHEDULED, startedPod } from '../../support/instance-world.ts';
import { claimOn, gpuInstance, gpuPool, inventoryOf } from '../../support/inventory-world.ts';

// What becomes of the GPUs of instance `one` while its pod and its node go through something, event by event.

const DELETED = { deletionTimestamp: EARLIER, deletionGracePeriodSeconds: 30, finalizers: [POD_FINALIZER] };
const FORCED = { ...DELETED, deletionGracePeriodSeconds: 0 };
const KEPT = { finalizers: [POD_FINALIZER] };
const OUT_OF_SERVICE = [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }];

const here = readyNode();
const silent = readyNode('n', 'Unknown');
const off: Node = { ...silent, spec: { taints: OUT_OF_SERVICE } };

function pod(phase: string, state: object, metadata: object, ...reasons: string[]): Pod {
  const disruptions = reasons.map((reason) => ({ type: 'DisruptionTarget', status: 'True', reason }));
  const main = { name: 'main', image: '', imageID: '', ready: false, restartCount: 0, state };
  const made = startedPod({ phase, conditions: [SCHEDULED, ...disruptions], containerStatuses: [main] }, metadata);
  const resources = { requests: { 'nvidia.com/gpu': '1' } };
  return { ...made, spec: { ...made.spec, containers: [{ name: 'main', resources }] } };
}

const RUNNING = { running: { startedAt: EARLIER } };
const ENDED = { terminated: { exitCode: 137, startedAt: EARLIER, finishedAt: EARLIER } };

interface Event {
  pod: Pod | undefined;
  node: Node | undefined;
}

/** One after the other: what the controller does about each event, and how many GPUs the node has free then. */
function lives(events: Event[], first: Partial<GpuInstance['spec']> = {}) {
  let instance = gpuInstance('one', first, { claim: claimOn('n'), incarnation: 1, podName: 'one-1', podUid: 'pod-1' });
  let version = 100;
  const { inventory, caches } = inventoryOf({ nodes: [here], pools: [gpuPool('default')], instances: [instance] });
  const stamp = <T extends { metadata: object }>(object: T): T => {
    return { ...object, metadata: { ...object.metadata, resourceVersion: String((version += 1)) } };
  };
  let [shown, shownNode]: [Pod | undefined, Node | undefined] = [undefined, here];
  return events.map(({ pod: now, node }) => {
    if (now !== undefined) caches.pods.upsert(stamp(now));
    else if (shown !== undefined) caches.pods.remove(stamp(shown));
    if (node !== undefined) caches.nodes.upsert(stamp(node));
    else if (shownNode !== undefined) caches.nodes.remove(stamp(shownNode));
    [shown, shownNode] = [now, node];
    const told: string[] = [];
    for (let count = 0; count < 4; count += 1) {
      const step = planNext(
        observed({ instance, pod: instance.status?.podName ? now : undefined, pods: now ? [now] : [], node }),
      );
      const ending = endingOf(instance.status);
      told.push(step.do === 'end' ? step.ending.reason : step.do);
      if (step.do === 'end') instance = { ...instance, status: endedStatus(instance, step.ending, NOW) };
      else if (step.do === 'release' && ending)
        instance = { ...instance, status: releasedStatus(instance, ending, NOW) };
      else break;
      caches.instances.upsert((instance = stamp(instance)));
    }
    const view = inventory.viewOf('n');
    const free = view === undefined || view.facts.isClosed ? 0 : 8 - (view.used['nvidia.com/gpu'] ?? 0);
    return `${told.join(' ')}: ${free}`;
  });
}

describe('the GPUs of a program', () => {
  test('are its own while its kubelet restarts', () => {
    const running = pod('Running', RUNNING, KEPT);
    expect(
      lives([
        { pod: running, node: here },
        { pod: running, node: silent },
        { pod: running, node: here },
      ]),
    ).toEqual(['observe: 7', 'observe: 0', 'observe: 7']);
  });

  test('are free when its node, short of memory, has evicted it', () => {
    const evicted = pod('Failed', ENDED, KEPT, 'TerminationByKubelet');
    expect(
      lives([
        { pod: pod('Running', RUNNING, KEPT), node: here },
        { pod: { ...evicted, status: { ...evicted.status, reason: 'Evicted' } }, node: here },
      ]),
    ).toEqual(['observe: 7', 'PodFailed release deletePods: 8']);
  });

  test.each([
    ['deleted by force', FORCED, []],
    ['deleted', DELETED, []],
    ['evicted by the interface of the API server', DELETED, ['EvictionByEvictionAPI']],
  ])('are its own while it ends, when its pod is %s', (_how, metadata, reasons) => {
    expect(
      lives([
        { pod: pod('Running', RUNNING, metadata, ...reasons), node: here },
        { pod: pod('Failed', ENDED, metadata, ...reasons), node: here },
      ]),
    ).toEqual(['PodDeleted observe: 7', 'release wait: 8']);
  });

  test('are its own while its node is lost, also when Kubernetes deletes the pod, and when the node is back', () => {
    const taken = pod('Running', RUNNING, DELETED, 'DeletionByTaintManager');
    expect(
      lives([
        { pod: taken, node: silent },
        { pod: taken, node: here },
        { pod: pod('Failed', ENDED, DELETED, 'DeletionByTaintManager'), node: here },
      ]),
    ).toEqual(['NodeLost observe: 0', 'observe: 7', 'release claim: 8']);
  });

  test('are its own when somebody forces its pod away on a lost node that comes back', () => {
    const forced = pod('Running', RUNNING, FORCED);
    expect(
      lives([
        { pod: forced, node: silent },
        { pod: forced, node: here },
      ]),
    ).toEqual(['PodDeleted observe: 0', 'observe: 7']);
  });

  test.each([
    ['gone', undefined],
    ['out of service', off],
  ])('are given back when its node is %s', (_what, node) => {
    const collected = pod('Failed', RUNNING, FORCED, 'DeletionByPodGC');
    expect(
      lives([
        { pod: collected, node: silent },
        { pod: collected, node },
      ]),
    ).toEqual(['NodeLost observe: 0', 'release claim: 0']);
  });

  test('are its own while the garbage collector says Failed, and its node is there', () => {
    const collected = pod('Failed', RUNNING, FORCED, 'DeletionByPodGC');
    expect(
      lives([
        { pod: collected, node: here },
        { pod: pod('Failed', ENDED, FORCED, 'DeletionByPodGC'), node: here },
      ]),
    ).toEqual(['NodeLost observe: 7', 'release claim: 8']);
  });

  test('are free without the pod of a version that set no finalizer, as before', () => {
    const old = { deletionTimestamp: EARLIER, deletionGracePeriodSeconds: 30 };
    expect(
      lives([
        { pod: pod('Running', RUNNING, old), node: here },
        { pod: undefined, node: here },
      ]),
    ).toEqual(['PodDeleted observe: 7', 'release wait: 8']);
  });
});
