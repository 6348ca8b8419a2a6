import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { INDEXES } from '../../../src/caches/indexes.ts';
import { PullAttempts } from '../../../src/controllers/images/attempts.ts';
import { reconcilePool } from '../../../src/controllers/images/controller.ts';
import { NODES_AT_ONCE, pullNodes } from '../../../src/controllers/images/plan.ts';
import { imageProgress, imagesReady } from '../../../src/controllers/images/progress.ts';
import { PullNames, pullPod, pullState } from '../../../src/controllers/images/pull-pod.ts';
import { nodeFacts } from '../../../src/inventory/nodes/node-view.ts';
import { orderPools } from '../../../src/inventory/pools.ts';
import { AlreadyExistsError } from '../../../src/kube/errors.ts';
import { keyOf, type Node, type ObjectRef, type Pod } from '../../../src/kube/types.ts';
import { Cache } from '../../../src/kube/watch/cache.ts';
import type { GpuPool, GpuPoolSpec } from '../../../src/resources/gpu-pool.ts';
import { Fence } from '../../../src/runtime/fence.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { gpuNode, gpuPool } from '../../support/inventory-world.ts';

type Status = NonNullable<Pod['status']>;

const PULLED: Status = { phase: 'Succeeded' };
const MAIN = { name: 'pull', image: 'i', imageID: '', ready: false, restartCount: 0 };

function waiting(reason: string, message: string, name = 'pull'): Status {
  return { phase: 'Pending', containerStatuses: [{ ...MAIN, name, state: { waiting: { reason, message } } }] };
}

const FAILED = waiting('ErrImagePull', 'registry.test: no such host');

/** A pool over a cluster that does what it is told at once; `late` holds back what the cache of pods would show. */
function world(spec: Partial<GpuPoolSpec>, nodes: Node[]) {
  const clock = fakeClock();
  const pools = new Map<string, GpuPool>();
  const setPool = (next: Partial<GpuPoolSpec>): unknown => {
    const { metadata, ...rest } = gpuPool('p', next);
    return pools.set('p', { ...rest, metadata: { ...metadata, uid: 'uid-p' } });
  };
  setPool(spec);
  const onListenerError = (error: unknown): never => {
    throw error as Error;
  };
  const pods = new Cache<Pod>({ indexers: INDEXES.pods, onListenerError });
  pods.replace([], '1');
  const there = new Map<string, Pod>();
  const calls: string[] = [];
  let version = 1;
  let late = false;
  const show = (pod: Pod): void => {
    if (!late) pods.upsert(pod);
  };
  const client = {
    create(_type: unknown, pod: Pod) {
      const key = keyOf(pod);
      calls.push(`create ${pod.metadata.name}`);
      if (there.has(key)) {
        return Promise.reject(new AlreadyExistsError({ message: 'exists', status: 409, reason: 'AlreadyExists' }));
      }
      version += 1;
      const made = { ...pod, metadata: { ...pod.metadata, uid: `uid-${version}`, resourceVersion: String(version) } };
      there.set(key, made);
      show(made);
      return Promise.resolve(made);
    },
    delete(_type: unknown, ref: ObjectRef) {
      calls.push(`delete ${ref.name}`);
      const gone = there.get(keyOf(ref));
      there.delete(keyOf(ref));
      if (!late && gone !== undefined) pods.remove(gone);
      return Promise.resolve();
    },
  };
  const pulls = { attempts: new PullAttempts(clock), names: new PullNames() };
  const facts = () => nodes.map((node) => nodeFacts(node, orderPools(pools.values())));
  const log = pino({ level: 'silent' });
  const deps = (own = pulls) =>
    ({
      client,
      stores: { pools, pods: pods.store },
      inventory: { nodes: () => facts().values() },
      clock,
      log,
      pulls: own,
      fence: new Fence(clock, log),
      config: { namespace: 'berth-system', toolsImage: 'tools', imagePullSecrets: [] },
    }) as unknown as Parameters<typeof reconcilePool>[0];
  const look = (own = pulls) => reconcilePool(deps(own), 'p', new AbortController().signal);
  /** What the kubelet says about every pod, or about that of one node. */
  const say = (status: Status, node?: string): void => {
    for (const pod of there.values()) {
      if (node !== undefined && nodeOf(pod) !== node) continue;
      version += 1;
      const after = { ...pod, metadata: { ...pod.metadata, resourceVersion: String(version) }, status };
      there.set(keyOf(pod), after);
      show(after);
    }
  };
  return {
    clock,
    calls,
    pods: there,
    pools,
    setPool,
    look,
    say,
    pulls,
    /** The nodes on which something is pulled, and what. */
    pulling: () =>
      [...there.values()].map((pod) => `${nodeOf(pod)} ${pod.spec?.containers[0]?.image ?? ''}`).toSorted(),
    progress: () => imageProgress(pools.get('p') as GpuPool, facts(), pulls),
    hold: () => (late = true),
    catchUp() {
      late = false;
      pods.replace([...there.values()], String(version));
    },
  };
}

function nodeOf(pod: Pod): string {
  const terms = pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  return terms?.[0]?.matchFields?.[0]?.values?.[0] ?? '';
}

const manyNodes = (count: number): Node[] => Array.from({ length: count }, (_, index) => gpuNode(`n${index}`));

describe('the images of a pool', () => {
  test('reach every node that lacks them, a few nodes at a time, and their pods go', async () => {
    const many = world({ images: ['a:1', 'b:1'] }, [
      ...manyNodes(6),
      gpuNode('has', { images: ['docker.io/library/a:1'] }),
    ]);
    let most = 0;
    for (let turn = 0; turn < 20; turn += 1) {
      await many.look();
      most = Math.max(most, many.pods.size);
      expect(new Set(many.pulling().map((pull) => pull.split(' ')[0])).size).toBe(many.pods.size);
      many.say(PULLED);
    }
    expect(most).toBe(NODES_AT_ONCE);
    expect(many.pods.size).toBe(0);
    const created = many.calls.filter((call) => call.startsWith('create'));
    expect(new Set(created).size).toBe(13);
    expect(created).toHaveLength(13);
    expect(many.progress()).toEqual([
      { image: 'a:1', nodes: 7, present: 7, failing: 0 },
      { image: 'b:1', nodes: 7, present: 7, failing: 0 },
    ]);
  });

  test('that are there are not pulled, and quiet pools write nothing', async () => {
    const full = world({ images: ['a:1'] }, [gpuNode('n', { images: ['docker.io/library/a:1'] })]);
    expect(await full.look()).toBeUndefined();
    expect(full.calls).toEqual([]);
  });

  test('are for nodes that take instances and run containers', () => {
    const nodes = [
      gpuNode('open'),
      gpuNode('cordoned', { cordoned: true }),
      gpuNode('away', { ready: false }),
      gpuNode('simulated', { labels: { 'berth.dev/simulated': 'true' } }),
      gpuNode('none', { allocatable: { 'nvidia.com/gpu': '0' }, labels: { 'nvidia.com/gpu.count': '0' } }),
    ].map((node) => nodeFacts(node, orderPools([gpuPool('p')])));
    expect(pullNodes(nodes, 'p').map(({ name }) => name)).toEqual(['open']);
  });

  test('that cannot be pulled are tried again after growing pauses, and the others go on', async () => {
    const bad = world({ images: ['bad:1', 'good:1'] }, [gpuNode('n')]);
    await bad.look();
    expect(bad.pulling()).toEqual(['n bad:1']);
    bad.say(FAILED);
    await bad.look();
    expect(bad.pulling()).toEqual([]);
    await bad.look();
    expect(bad.pulling()).toEqual(['n good:1']);
    bad.say(PULLED);
    await bad.look();
    const waits: number[] = [];
    for (let turn = 0; turn < 5; turn += 1) {
      const { requeueAfterMs = 0 } = (await bad.look()) ?? {};
      waits.push(requeueAfterMs);
      expect(bad.pods.size).toBe(0);
      bad.clock.stall(requeueAfterMs);
      await bad.look();
      expect(bad.pulling()).toEqual(['n bad:1']);
      bad.say(FAILED);
      await bad.look();
    }
    expect(waits).toEqual([60_000, 120_000, 240_000, 480_000, 960_000]);
    const [progress] = bad.progress();
    expect(progress).toMatchObject({ image: 'bad:1', nodes: 1, present: 0, failing: 1 });
    expect(progress?.message).toContain('registry.test: no such host');
    expect(imagesReady(bad.progress())).toMatchObject({ status: 'False', reason: 'PullFailed' });
  });

  test('that failed and that no node has are tried on one node at a time', async () => {
    const bad = world({ images: ['bad:1'] }, manyNodes(50));
    await bad.look();
    bad.say(FAILED);
    await bad.look();
    await bad.look();
    expect(bad.pods.size).toBe(1);
    bad.say(PULLED);
    await bad.look();
    await bad.look();
    expect(bad.pods.size).toBe(NODES_AT_ONCE);
  });

  test('are counted once, however often their pod is seen', async () => {
    const bad = world({ images: ['bad:1'] }, [gpuNode('n')]);
    await bad.look();
    bad.say(FAILED);
    bad.hold();
    for (let turn = 0; turn < 3; turn += 1) await bad.look();
    bad.catchUp();
    expect((await bad.look())?.requeueAfterMs).toBe(60_000);
  });

  test('are pulled by one pod, though two leaders ask for it and one has an old cache', async () => {
    const two = world({ images: ['a:1'] }, [gpuNode('n')]);
    two.hold();
    await two.look();
    await two.look({ attempts: new PullAttempts(two.clock), names: new PullNames() });
    expect(two.calls).toHaveLength(2);
    expect(two.pods.size).toBe(1);
    two.catchUp();
    two.say(PULLED);
    await two.look();
    expect(two.pods.size).toBe(0);
    expect(two.progress()).toEqual([{ image: 'a:1', nodes: 1, present: 1, failing: 0 }]);
  });

  test('that are no longer listed lose their pods, as do those of a pool that is gone', async () => {
    const edited = world({ images: ['a:1'] }, [gpuNode('n')]);
    await edited.look();
    edited.setPool({ images: ['b:1'] });
    await edited.look();
    await edited.look();
    expect(edited.pulling()).toEqual(['n b:1']);
    edited.pools.clear();
    await edited.look();
    expect(edited.pods.size).toBe(0);
  });

  test('whose pod is refused wait, and the pool says why', async () => {
    const refused = world({ images: ['a:1'] }, [gpuNode('n')]);
    refused.hold();
    await refused.look();
    // Another one of this name, which no cache shows.
    expect((await refused.look())?.requeueAfterMs).toBe(1_000);
    expect((await refused.look())?.requeueAfterMs).toBe(60_000);
    expect(refused.progress()[0]?.message).toContain('The API server takes no pod that pulls: exists');
  });

  test('are tried once an hour at the least', () => {
    const clock = fakeClock();
    const attempts = new PullAttempts(clock);
    for (let failure = 0; failure < 20; failure += 1) attempts.note('p', 'a', { uid: String(failure), message: 'm' });
    expect(attempts.dueAt('p', 'a') - clock.now()).toBe(3_600_000);
  });

  test('that a node does not show are asked for again after an hour, not at once', async () => {
    const full = world({ images: ['a:1'] }, [gpuNode('n')]);
    await full.look();
    full.say(PULLED);
    await full.look();
    expect((await full.look())?.requeueAfterMs).toBe(3_600_000);
    full.clock.stall(3_600_000);
    await full.look();
    expect(full.pulling()).toEqual(['n a:1']);
  });

  test('are ready when every node has them, and a pool without a list says nothing', () => {
    const one = { image: 'a:1', nodes: 2, present: 1, failing: 0 };
    expect(imagesReady([])).toBeUndefined();
    expect(imagesReady([{ ...one, nodes: 0, present: 0 }])).toMatchObject({ status: 'True', reason: 'NothingToPull' });
    expect(imagesReady([one])).toMatchObject({ status: 'False', reason: 'Pulling' });
    expect(imagesReady([{ ...one, present: 2 }])).toMatchObject({ status: 'True', reason: 'Present' });
  });
});

describe('a pod that pulls', () => {
  const NOW = Date.UTC(2026, 0, 1);
  const pod = pullPod({
    pool: gpuPool('p', { images: ['a:1'], imagePullSecrets: [{ name: 'own' }] }),
    name: 'berth-pull-1',
    node: 'n',
    image: 'a:1',
    namespace: 'berth-system',
    toolsImage: 'tools',
    imagePullSecrets: ['of-berth'],
  });

  test('takes no GPU, no rights and no place of an instance', () => {
    const { containers, initContainers = [], ...spec } = pod.spec ?? { containers: [] };
    for (const { resources, securityContext } of [...containers, ...initContainers]) {
      expect(Object.keys({ ...resources?.requests, ...resources?.limits }).toSorted()).toEqual(['cpu', 'memory']);
      expect(securityContext).toMatchObject({
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'] },
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      });
    }
    expect(spec).toMatchObject({
      priorityClassName: 'berth-image-pulls',
      automountServiceAccountToken: false,
      imagePullSecrets: [{ name: 'own' }, { name: 'of-berth' }],
    });
    expect(containers[0]).toMatchObject({ image: 'a:1', imagePullPolicy: 'IfNotPresent' });
  });

  test.each<[string, Status, string]>([
    ['runs', { containerStatuses: [{ ...MAIN, imageID: 'sha256:1', state: { running: {} } }] }, 'done'],
    ['cannot run its program', waiting('RunContainerError', 'x'), 'done'],
    ['is new', {}, 'pulling'],
    ['pulls', waiting('PodInitializing', ''), 'pulling'],
    ['has a bad name', waiting('InvalidImageName', 'x'), 'failed'],
    ['lacks the tools image', waiting('ImagePullBackOff', 'x', 'berth-tools'), 'failed'],
    ['took too long', { phase: 'Failed', reason: 'DeadlineExceeded' }, 'failed'],
    ['was lost with its node', { phase: 'Failed', containerStatuses: [MAIN] }, 'failed'],
    [
      'finds no room for long',
      { conditions: [{ type: 'PodScheduled', status: 'False', lastTransitionTime: '2025-12-31T23:58:00Z' }] },
      'failed',
    ],
    [
      'finds no room yet',
      { conditions: [{ type: 'PodScheduled', status: 'False', lastTransitionTime: '2025-12-31T23:59:59Z' }] },
      'pulling',
    ],
  ])('that %s', (_words, status, is) => {
    expect(pullState({ ...pod, status }, NOW).is).toBe(is);
  });

  test('has a name of its node and image alone', () => {
    expect(new PullNames().of('n', 'a:1')).toBe(new PullNames().of('n', 'a:1'));
    expect(new PullNames().of('n', 'a:1')).not.toBe(new PullNames().of('n', 'a:2'));
    expect(new PullNames().of('n', 'a:1')).not.toBe(new PullNames().of('m', 'a:1'));
  });
});
