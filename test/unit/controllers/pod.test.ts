import { describe, expect, test } from 'vitest';
import type { Node, Pod, StorageClass } from '../../../src/kube/types.ts';
import { planNext } from '../../../src/controllers/gpu-instance/decide/plan.ts';
import type { GpuInstanceSpec } from '../../../src/resources/instances/gpu-instance.ts';
import type { GpuPool, GpuPoolSpec } from '../../../src/resources/gpu-pool.ts';
import { SCC_GROUPS } from '../../../tools/release/openshift.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { conditionsOf } from '../../../src/controllers/gpu-instance/decide/status/conditions.ts';
import { templateStatus } from '../../../src/controllers/status/instance-template.ts';
import { EARLIER, observed, SCHEDULED, startedPod } from '../../support/instance-world.ts';
import { claimOn, gpuInstance, gpuNode, gpuPool } from '../../support/inventory-world.ts';

const ABLE = gpuNode('n', { userNamespaces: { '': true } });

interface Around {
  namespaceLabels?: Record<string, string>;
  namespaceAnnotations?: Record<string, string>;
  storageClasses?: StorageClass[];
  nodes?: Node[];
  pools?: GpuPool[];
}

/** Lets the controller work on one instance as the API server may hold it, and returns what came of it. */
async function start(spec: Partial<GpuInstanceSpec>, around: Around = {}, status?: Parameters<typeof gpuInstance>[2]) {
  const { namespaceLabels: labels = {}, namespaceAnnotations: annotations = {}, ...fleet } = around;
  const world = controllerWorld(undefined, undefined, fleet);
  const metadata = { name: 'default', uid: 'uid-default', resourceVersion: '2', labels, annotations };
  world.namespaces.upsert({ metadata });
  // An object that was stored before a rule of its definition was made keeps what the rule refuses.
  const { spec: defaults, ...rest } = gpuInstance('one', {}, status);
  world.instances.upsert(held({ ...rest, spec: { ...defaults, ...spec } }));
  await world.reconcile('one').catch(() => undefined);
  const after = world.instances.store.get('default/one')?.status;
  return { pod: world.createdPods()[0], ready: after?.conditions?.[0], ending: after?.ending, after };
}

const pool = (spec: Partial<GpuPoolSpec>): Around => ({ pools: [gpuPool('p', spec)] });

describe('a variable that chooses devices', () => {
  const env = [{ name: 'NVIDIA_VISIBLE_DEVICES', value: 'all' }];

  test('reaches no pod, also from an instance that was stored before it was refused', async () => {
    const { pod, ending } = await start({ env });
    expect(pod).toBeUndefined();
    expect(ending?.reason).toBe('ForbiddenEnv');
    expect(ending?.message).toContain('NVIDIA_VISIBLE_DEVICES in env of the instance or its template');
  });

  test('reaches no pod of an instance that has its place already', async () => {
    const status = { claim: claimOn('n'), incarnation: 1, podName: 'one-1', diskPersistent: false, diskGb: 10 };
    const { pod, ending } = await start({ env }, {}, status);
    expect(pod).toBeUndefined();
    expect(ending?.reason).toBe('ForbiddenEnv');
  });

  test('in a stored template is told', () => {
    const { statusOf } = templateStatus(controllerWorld().deps.stores, 'berth-system');
    const template = { metadata: { name: 't', uid: 'u' }, spec: { displayName: '', env } };
    expect(statusOf(template, 0).conditions?.[0]).toMatchObject({ status: 'False', reason: 'ForbiddenEnv' });
  });

  test('of an image is closed where the toolkit would ask nobody else', async () => {
    const { pod } = await start({ env: [{ name: 'CUDA_VISIBLE_DEVICES', value: '0' }] });
    const names = pod?.spec?.containers[0]?.env?.filter(({ name }) => name.startsWith('NVIDIA_'));
    expect(names).toEqual(
      ['NVIDIA_GDS', 'NVIDIA_GDRCOPY', 'NVIDIA_MOFED', 'NVIDIA_NVSWITCH'].map((name) => ({ name, value: 'disabled' })),
    );
    expect(pod?.spec?.containers[0]?.env).toContainEqual({ name: 'CUDA_VISIBLE_DEVICES', value: '0' });
    expect(Object.keys(pod?.metadata.annotations ?? {})).toEqual(['berth.dev/claim']);
  });
});

test('a container makes no device nodes, sends no raw packets and runs under the seccomp profile of the runtime', async () => {
  const { pod } = await start({});
  for (const container of [...(pod?.spec?.containers ?? []), ...(pod?.spec?.initContainers ?? [])]) {
    const { capabilities, ...context } = container.securityContext ?? {};
    expect(context).toMatchObject({ allowPrivilegeEscalation: false, seccompProfile: { type: 'RuntimeDefault' } });
    const drop = capabilities?.drop ?? [];
    expect(drop.includes('ALL') || (drop.includes('MKNOD') && drop.includes('NET_RAW'))).toBe(true);
    expect(capabilities?.add).toBeUndefined();
  }
});

test.each(['berth-system', 'kube-system'])(
  'an instance in %s gets no place, and is told where to go',
  async (namespace) => {
    const world = controllerWorld();
    const { metadata, ...rest } = gpuInstance('one');
    world.instances.upsert(held({ ...rest, metadata: { ...metadata, namespace } }));
    await world.reconcile('one', namespace);
    expect(world.createdPods()).toEqual([]);
    const { claim, ending } = world.instances.store.get(`${namespace}/one`)?.status ?? {};
    expect([claim, ending?.reason]).toEqual([undefined, 'NotATenant']);
    expect(ending?.message).toContain('create it in the namespace of a tenant');
  },
);

test("on OpenShift a disk has the group of the namespace, which the namespace's constraint asks for", async () => {
  const storageClasses = [
    {
      metadata: { name: 'fast', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
      provisioner: 'example.com/disks',
    },
  ];
  const { pod } = await start({}, { storageClasses, namespaceAnnotations: SCC_GROUPS });
  expect(pod?.spec?.securityContext?.fsGroup).toBe(1_000_680_000);
});

describe('root', () => {
  test('is to be had by asking for it, and gains nothing more', async () => {
    const { pod } = await start({ runAsRoot: true });
    const { pod: usual } = await start({});
    const contextOf = (of: typeof pod) => of?.spec?.containers[0]?.securityContext;
    expect(contextOf(pod)).toEqual({ ...contextOf(usual), runAsUser: 0 });
    expect(contextOf(pod)).toMatchObject({ allowPrivilegeEscalation: false });
    expect(contextOf(usual)?.runAsUser).toBeUndefined();
  });

  test('is refused in a namespace that allows none, before a GPU is held', async () => {
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    const { pod, ending, after } = await start({ runAsRoot: true }, { namespaceLabels: labels });
    expect([pod, after?.claim]).toEqual([undefined, undefined]);
    expect(ending).toMatchObject({ reason: 'ForbiddenRoot', message: expect.stringContaining('Rent without root') });
  });
});

describe('the RuntimeClass', () => {
  test('of the pool holds whatever the instance names', async () => {
    const { pod } = await start({ runtimeClassName: 'runc' }, pool({ runtimeClassName: 'kata' }));
    expect(pod?.spec?.runtimeClassName).not.toBe('runc');
    expect(pod).toBeUndefined();
  });

  test('of the pool may be named', async () => {
    const { pod } = await start({ runtimeClassName: 'kata' }, pool({ runtimeClassName: 'kata' }));
    expect(pod?.spec?.runtimeClassName).toBe('kata');
  });

  test('that the tenant may not choose is refused with words', async () => {
    const { pod, ending } = await start({ runtimeClassName: 'nvidia' });
    expect(pod).toBeUndefined();
    expect(ending).toMatchObject({
      reason: 'ForbiddenRuntimeClass',
      message: expect.stringContaining('runtimeClassNames of the TenantPolicy'),
    });
  });
});

describe('a user namespace', () => {
  test('is required by the pool: a node that has none is offered to nobody', async () => {
    const { pod, ready } = await start({}, pool({ userNamespaces: 'Required' }));
    expect(pod).toBeUndefined();
    expect(ready?.reason).toBe('WaitingForCapacity');
  });

  test('is required by the pool: an instance cannot ask for less', async () => {
    const { pod } = await start({ hostUsers: true }, { nodes: [ABLE], ...pool({ userNamespaces: 'Required' }) });
    expect(pod?.spec?.hostUsers).toBe(false);
  });

  test('is asked for by the instance: it waits for a node that can, and is told so', async () => {
    const { pod, ready } = await start({ hostUsers: false });
    expect(pod).toBeUndefined();
    expect(ready).toMatchObject({
      reason: 'WaitingForCapacity',
      message: expect.stringContaining('not on a node that runs pods in user namespaces (spec.hostUsers is false)'),
    });
    const able = await start({ hostUsers: false }, { nodes: [ABLE] });
    expect(able.pod?.spec?.hostUsers).toBe(false);
  });

  test('is preferred by the pool: where the node can', async () => {
    const preferred = pool({ userNamespaces: 'Preferred' });
    expect((await start({}, { nodes: [ABLE], ...preferred })).pod?.spec?.hostUsers).toBe(false);
    const without = await start({}, preferred);
    expect(without.pod).toBeDefined();
    expect(without.pod?.spec?.hostUsers).toBeUndefined();
  });
});

describe('a private image', () => {
  test('is asked for at the registry at each start, with the Secrets of the instance', async () => {
    const { pod } = await start({ imagePullSecrets: [{ name: 'team' }] });
    expect(pod?.spec?.imagePullSecrets).toEqual([{ name: 'team' }]);
    expect(pod?.spec?.containers[0]?.imagePullPolicy).toBe('Always');
  });

  const REFUSED =
    'reg.example/app:1 cannot be pulled: its registry refuses the credentials, or has no such image. Check its name and tag.';

  function pulling(image: string, message: string, spec: object = {}): Pod {
    const waiting = { reason: 'ErrImagePull', message };
    const main = { name: 'main', image, imageID: '', ready: false, restartCount: 0, state: { waiting } };
    const pod = startedPod({ conditions: [SCHEDULED], containerStatuses: [main] });
    return { ...pod, spec: { ...pod.spec, containers: [{ name: 'main', image }], ...spec } };
  }

  test.each([
    [[], 'If the image is private, name credentials for its registry.'],
    [[{ name: 'berth.image-pull' }], 'If the image is private, name credentials for its registry.'],
    [
      [{ name: 'team' }, { name: 'gone' }],
      'The kubelet asked with the imagePullSecrets team, gone and passes over one that does not exist.',
    ],
  ])('that the registry refuses to %j is told', (imagePullSecrets, words) => {
    const asked = pulling('reg.example/app:1', 'no basic auth credentials', { imagePullSecrets });
    const found = conditionsOf(observed({ pod: asked }), undefined);
    const told = { status: 'False', reason: 'ImagePullBackOff', message: `${REFUSED} ${words}` };
    expect(found.find(({ type }) => type === 'Ready')).toMatchObject(told);
    expect(found.find(({ type }) => type === 'ImageReady')).toMatchObject(told);
  });

  // Whose image's name is an address, or leads to one, reads nothing of what answers there.
  test.each([
    ['ErrImagePull', 'failed to resolve reference: unexpected status: 500: {"password":"hunter2"}'],
    ['RegistryUnavailable', 'dial tcp 10.0.0.5:8080: connect: connection refused: hunter2'],
    ['InvalidImageName', 'hunter2'],
  ])('tells nothing of the words of the kubelet: %s', (reason, message) => {
    for (const container of ['main', 'berth-tools', 'from-a-webhook']) {
      const waiting = { reason, message };
      const status = { name: container, image: 'x', imageID: '', ready: false, restartCount: 0, state: { waiting } };
      const pod = startedPod({ conditions: [SCHEDULED], containerStatuses: [status, { ...status, name: 'main' }] });
      const seen = observed({
        instance: gpuInstance('one', {}, { claim: { ...claimOn('n'), grantedAt: EARLIER }, runtype: 'ssh' }),
        pod,
      });
      const conditions = JSON.stringify(conditionsOf(seen, undefined));
      expect(conditions).toContain('cannot be pulled');
      const ends = planNext({ ...seen, now: Date.parse(EARLIER) + 3_600_000 });
      expect(ends.do).toBe('end');
      for (const secret of ['hunter2', 'refused', '10.0.0.5']) {
        expect(conditions).not.toContain(secret);
        expect(JSON.stringify(ends)).not.toContain(secret);
      }
    }
  });

  test("of Berth's own is nothing that a tenant could name a Secret for", () => {
    const waiting = { reason: 'ErrImagePull', message: 'no basic auth credentials' };
    const status = { name: 'tools', image: 'berth', imageID: '', ready: false, restartCount: 0, state: { waiting } };
    const pod = startedPod({ conditions: [SCHEDULED], initContainerStatuses: [status] });
    const tools = { name: 'tools', image: 'reg.example/app:1' };
    const asked = { ...pod, spec: { containers: [], ...pod.spec, initContainers: [tools] } };
    expect(conditionsOf(observed({ pod: asked }), undefined).find(({ type }) => type === 'Ready')?.message).toBe(
      `${REFUSED} It is an image of Berth: tell the operator of this cluster.`,
    );
  });
});

test('a pod tolerates the taint of GPU nodes and what its pool names, and nothing else', async () => {
  const own = { key: 'team', operator: 'Equal', value: 'ml' } as const;
  const gpus = { key: 'nvidia.com/gpu', operator: 'Exists' };
  expect((await start({})).pod?.spec?.tolerations).toEqual([gpus]);
  expect((await start({}, pool({ tolerations: [own] }))).pod?.spec?.tolerations).toEqual([gpus, own]);
});
