import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { findObject } from '../../../src/kube/client/find-object.ts';
import { findCondition } from '../../../src/kube/conditions.ts';
import {
  type KubeObject,
  NAMESPACES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  PODS,
} from '../../../src/kube/types.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { TENANT_LIMITS } from '../../../src/resources/tenants/tenant-limit.ts';
import { TENANT_POLICIES } from '../../../src/resources/tenants/tenant-policy.ts';
import { BUSYBOX_IMAGE } from '../../../tools/cluster/built/real-node.ts';
import { run } from '../../../tools/lib/shell.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { describeWith } from '../../support/needs.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

const START_MS = 60_000;

let berth: BerthProcess;
let tenant: TestNamespace;

function get(name: string): Promise<GpuInstance> {
  return tenant.client.get(GPU_INSTANCES, { namespace: tenant.name, name });
}

async function reached(name: string, reason: string): Promise<void> {
  const ready = async () => findCondition((await get(name)).status?.conditions, 'Ready')?.reason === reason;
  await waitFor(`${name} to be ${reason}`, ready, START_MS);
}

async function gone(...[type, name]: [Parameters<typeof findObject>[1], string]): Promise<void> {
  const ref = { namespace: tenant.name, name };
  await waitFor(`the end of ${name}`, async () => (await findObject(tenant.client, type, ref)) === undefined, START_MS);
}

/** Runs a script in the pod of a start. */
async function inside(pod: string, script: string): Promise<string> {
  const { kubeconfig, programs = '' } = inject('cluster');
  const place = ['--kubeconfig', kubeconfig, '-n', tenant.name, pod, '-c', 'main'];
  const { stdout, stderr, code } = await run(join(programs, 'kubectl'), ['exec', ...place, '--', 'sh', '-c', script]);
  expect(code, stderr).toBe(0);
  return stdout;
}

/** An object as a backup has it, without what the API server gives, and what says that a claim is bound. */
function saved<T extends KubeObject>({ metadata, status: _status, ...rest }: T & { status?: unknown }): T {
  const { name, namespace, labels, annotations = {}, finalizers } = metadata;
  const kept = Object.fromEntries(Object.entries(annotations).filter(([key]) => !key.startsWith('pv.kubernetes.io/')));
  return { ...rest, metadata: { name, namespace, labels, annotations: kept, finalizers } } as unknown as T;
}

describeWith('real node')('a disk that is restored', () => {
  beforeAll(async () => {
    tenant = await testNamespace();
    berth = await startBerth(inject('cluster').kubeconfig, 'controller');
  });
  afterAll(async () => {
    await berth[Symbol.asyncDispose]();
    await tenant[Symbol.asyncDispose]();
  });

  it.each(
    (['Delete', 'Retain'] as const).flatMap((policy) =>
      (['the claim first', 'the instance first', 'both at once'] as const).map((order) => [policy, order] as const),
    ),
  )('with diskPolicy %s, %s, has its files', { timeout: 6 * START_MS }, async (diskPolicy, order) => {
    const { client, name: namespace } = tenant;
    const name = `${diskPolicy}-${order.replaceAll(' ', '-')}`.toLowerCase();
    const disk = { namespace, name: `${name}-disk` };
    const gpu = { product: 'NVIDIA-L4', count: 1 };
    await client.create(GPU_INSTANCES, {
      metadata: { namespace, name },
      spec: { gpu, image: BUSYBOX_IMAGE, diskGb: 1, diskPolicy },
    } as never);
    await reached(name, 'Running');
    await inside(`${name}-1`, `echo ${name} >/workspace/bytes; sync`);
    await waitFor('the note of the disk', async () => (await get(name)).metadata.annotations?.['berth.dev/disk']);
    const instance = await get(name);
    const claim = await client.get(PERSISTENT_VOLUME_CLAIMS, disk);
    const volume = { name: claim.spec?.volumeName ?? '' };
    const keep = { spec: { persistentVolumeReclaimPolicy: 'Retain' } };
    await client.patch(PERSISTENT_VOLUMES, volume, keep, { type: 'merge' });

    await client.delete(GPU_INSTANCES, instance.metadata);
    await gone(GPU_INSTANCES, name);
    if (diskPolicy === 'Retain') await client.delete(PERSISTENT_VOLUME_CLAIMS, disk);
    await gone(PERSISTENT_VOLUME_CLAIMS, disk.name);
    const isReleased = async () => (await client.get(PERSISTENT_VOLUMES, volume)).status?.phase === 'Released';
    await waitFor('the volume to be released', isReleased, START_MS);
    await client.patch(PERSISTENT_VOLUMES, volume, [{ op: 'remove', path: '/spec/claimRef/uid' }], { type: 'json' });

    const bringClaim = async () => {
      await client.create(PERSISTENT_VOLUME_CLAIMS, saved(claim));
    };
    const bringInstance = async () => {
      await client.create(GPU_INSTANCES, saved(instance));
    };
    if (order === 'the claim first') {
      await bringClaim();
      const kept = async () =>
        (await client.get(PERSISTENT_VOLUME_CLAIMS, disk)).metadata.labels?.['berth.dev/retained-from'] === name;
      await waitFor('the disk to be kept', kept);
      await bringInstance();
    } else if (order === 'the instance first') {
      await bringInstance();
      await reached(name, 'DiskLost');
      await bringClaim();
    } else await Promise.all([bringInstance(), bringClaim()]);
    await reached(name, 'Running');
    expect(await inside(`${name}-1`, 'cat /workspace/bytes')).toBe(`${name}\n`);
    const [after, back] = [await client.get(PERSISTENT_VOLUME_CLAIMS, disk), await get(name)];
    expect(back.status?.disk).toEqual({ name: disk.name, uid: after.metadata.uid });
    expect(after.metadata.labels).toMatchObject({
      'berth.dev/instance-uid': back.metadata.uid,
      'berth.dev/disk-policy': diskPolicy,
    });

    await client.delete(GPU_INSTANCES, { namespace, name });
    await gone(GPU_INSTANCES, name);
    await gone(PODS, `${name}-1`);
    if (diskPolicy === 'Retain') await client.delete(PERSISTENT_VOLUME_CLAIMS, disk);
    await gone(PERSISTENT_VOLUME_CLAIMS, disk.name);
    await client.delete(PERSISTENT_VOLUMES, volume);
  });

  it(
    'whose files the node does not find says so in the words of the node, and runs when they are back',
    { timeout: 4 * START_MS },
    async () => {
      const { client, name: namespace } = tenant;
      const [name, folder] = ['unmounted', mkdtempSync(join(tmpdir(), 'berth-disk-'))];
      const volume = { name: `${namespace}-unmounted` };
      await client.create(PERSISTENT_VOLUMES, {
        metadata: volume,
        spec: {
          capacity: { storage: '1Gi' },
          accessModes: ['ReadWriteOnce'],
          persistentVolumeReclaimPolicy: 'Retain',
          storageClassName: 'berth-local',
          claimRef: { namespace, name: `${name}-disk` },
          hostPath: { path: join(folder, 'files'), type: 'Directory' },
        },
      });
      const gpu = { product: 'NVIDIA-L4', count: 1 };
      await client.create(GPU_INSTANCES, {
        metadata: { namespace, name },
        spec: { gpu, image: BUSYBOX_IMAGE, diskGb: 1 },
      } as never);
      const words = async () => findCondition((await get(name)).status?.conditions, 'Ready')?.message ?? '';
      await waitFor('the words of the node', async () => /FailedMount: .*files is not a directory/.test(await words()));
      mkdirSync(join(folder, 'files'));
      writeFileSync(join(folder, 'files/bytes'), 'back');
      await reached(name, 'Running');
      expect(await inside(`${name}-1`, 'cat /workspace/bytes')).toBe('back');
      await client.delete(GPU_INSTANCES, { namespace, name });
      await gone(GPU_INSTANCES, name);
      await client.delete(PERSISTENT_VOLUMES, volume);
      rmSync(folder, { recursive: true });
    },
  );

  it(
    'changed in every mark, and let go by none, has its files after a stop and a start',
    { timeout: 4 * START_MS },
    async () => {
      const { client, name: namespace } = tenant;
      const [name, disk] = ['marks', { namespace, name: 'marks-disk' }];
      const gpu = { product: 'NVIDIA-L4', count: 1 };
      await client.create(GPU_INSTANCES, {
        metadata: { namespace, name },
        spec: { gpu, image: BUSYBOX_IMAGE, diskGb: 1 },
      } as never);
      await reached(name, 'Running');
      await inside('marks-1', 'echo marks >/workspace/bytes; sync');
      const before = await client.get(PERSISTENT_VOLUME_CLAIMS, disk);
      // Kubernetes itself deletes what has an owner that is not there.
      const { metadata: owning } = await client.create<GpuInstance>(GPU_INSTANCES, {
        metadata: { namespace, name: 'other' },
        spec: { gpu, image: BUSYBOX_IMAGE, powerState: 'Stopped' },
      } as never);
      const other = { apiVersion: 'berth.dev/v1alpha1', kind: 'GPUInstance', name: 'other', uid: owning.uid };
      const marks = Object.keys(before.metadata.labels ?? {});
      const changes = [
        ...marks.map((mark) => ({ labels: { [mark]: 'zzz' } })),
        { labels: Object.fromEntries(marks.map((mark) => [mark, null])), ownerReferences: [other] },
      ];
      for (const metadata of changes) {
        await client.patch(PERSISTENT_VOLUME_CLAIMS, disk, { metadata }, { type: 'merge' });
        const areBack = async () => {
          const { metadata: now } = await client.get(PERSISTENT_VOLUME_CLAIMS, disk);
          return JSON.stringify(now.labels) === JSON.stringify(before.metadata.labels) && !now.ownerReferences?.length;
        };
        await waitFor('the marks to come back', areBack);
      }
      for (const powerState of ['Stopped', 'Running']) {
        await client.patch(GPU_INSTANCES, { namespace, name }, { spec: { powerState } }, { type: 'merge' });
        await reached(name, powerState);
      }
      expect(await inside('marks-2', 'cat /workspace/bytes')).toBe('marks\n');
      expect((await client.get(PERSISTENT_VOLUME_CLAIMS, disk)).metadata.uid).toBe(before.metadata.uid);
      for (const one of [name, 'other']) {
        await client.delete(GPU_INSTANCES, { namespace, name: one });
        await gone(GPU_INSTANCES, one);
      }
      await gone(PERSISTENT_VOLUME_CLAIMS, disk.name);
    },
  );

  it(
    'that is kept counts to the ceiling of its tenant until someone deletes it',
    { timeout: 8 * START_MS },
    async () => {
      const { client, name: namespace } = tenant;
      const policy = { name: `${namespace}-disks` };
      const limit = () => findObject(client, TENANT_LIMITS, { namespace, name: 'berth' });
      const create = (name: string, spec: object) => {
        const usual = { gpu: { product: 'NVIDIA-L4', count: 1 }, image: BUSYBOX_IMAGE };
        return client.create(GPU_INSTANCES, { metadata: { namespace, name }, spec: { ...usual, ...spec } } as never);
      };
      const labels = { 'berth.dev/tenant': 'true' };
      await client.patch(NAMESPACES, { name: namespace }, { metadata: { labels } }, { type: 'merge' });
      await client.create(TENANT_POLICIES, {
        metadata: policy,
        spec: { namespaceLabels: { 'kubernetes.io/metadata.name': namespace }, diskGb: 3 },
      } as never);
      await create('keeper', { diskGb: 2, diskPolicy: 'Retain' });
      await reached('keeper', 'Running');
      await waitFor('the ceiling', async () => (await limit())?.spec.diskGb === 3);
      await inside('keeper-1', 'echo keeper >/workspace/bytes; sync');
      await client.delete(GPU_INSTANCES, { namespace, name: 'keeper' });
      await gone(GPU_INSTANCES, 'keeper');
      const kept = async () => (await limit())?.status?.keptDisks;
      await waitFor('the disk to be counted', async () => (await kept())?.gb === 2);

      await create('next', { diskGb: 2 });
      await reached('next', 'TenantLimit');
      const words = findCondition((await get('next')).status?.conditions, 'Ready')?.message;
      expect(words).toContain('kept from a deleted instance: keeper-disk (2 GB)');
      expect(words).toContain(`The operator can change diskGb in TenantPolicy ${policy.name}.`);
      // A disk that is there is never refused, nor what it holds lost.
      await client.patch(TENANT_POLICIES, policy, { spec: { diskGb: 1 } }, { type: 'merge' });
      await waitFor('the lowered ceiling', async () => (await limit())?.spec.diskGb === 1);
      await create('keeper', { diskGb: 2, diskPolicy: 'Retain' });
      await reached('keeper', 'Running');
      expect(await inside('keeper-1', 'cat /workspace/bytes')).toBe('keeper\n');
      expect(await kept()).toBeUndefined();
      await client.delete(GPU_INSTANCES, { namespace, name: 'keeper' });
      await gone(GPU_INSTANCES, 'keeper');

      await client.patch(TENANT_POLICIES, policy, { spec: { diskGb: 3 } }, { type: 'merge' });
      await waitFor('the ceiling as before', async () => (await limit())?.spec.diskGb === 3);
      await client.delete(PERSISTENT_VOLUME_CLAIMS, { namespace, name: 'keeper-disk' });
      await reached('next', 'Running');
      await client.delete(GPU_INSTANCES, { namespace, name: 'next' });
      await gone(PERSISTENT_VOLUME_CLAIMS, 'next-disk');
      await client.delete(TENANT_POLICIES, policy);
    },
  );
});
