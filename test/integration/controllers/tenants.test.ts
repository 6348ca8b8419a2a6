import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { findCondition } from '../../../src/kube/conditions.ts';
import { ForbiddenError } from '../../../src/kube/errors.ts';
import { NAMESPACES, RESOURCE_QUOTAS } from '../../../src/kube/types.ts';
import { GPU_INSTANCES, type GpuInstanceSpec } from '../../../src/resources/instances/gpu-instance.ts';
import { INSTANCE_TEMPLATES, type InstanceTemplateSpec } from '../../../src/resources/instance-template.ts';
import { SSH_KEYS } from '../../../src/resources/ssh-key.ts';
import { TENANT_LIMITS } from '../../../src/resources/tenants/tenant-limit.ts';
import { TENANT_POLICIES, type TenantPolicySpec } from '../../../src/resources/tenants/tenant-policy.ts';
import { run } from '../../../tools/lib/shell.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { readyReason } from '../../faults/support/world.ts';
import type { Cluster } from '../../support/http/api.ts';
import { type Call, clientOf } from '../../support/http/client.ts';
import { addNode, gpuNode } from '../../support/http/fleet.ts';
import { openCluster } from '../../support/http/open.ts';
import { waitFor } from '../../support/wait-for.ts';

const PRODUCT = 'TEST-GPU-TENANT';
const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me@laptop';

let cluster: Cluster;
let controller: BerthProcess;
let tenant: string;
let call: Call;
let removeNode: () => Promise<void>;

const policy = (): string => `${tenant}-policy`;
const quota = () => cluster.client.get(RESOURCE_QUOTAS, { namespace: tenant, name: 'berth' });
const limit = () => cluster.client.get(TENANT_LIMITS, { namespace: tenant, name: 'berth' });

async function set(spec: object): Promise<void> {
  await cluster.client.patch(TENANT_POLICIES, { name: policy() }, { spec }, { type: 'merge' });
}

beforeAll(async () => {
  cluster = await openCluster();
  tenant = await cluster.namespace('tenant');
  const own = await cluster.namespace('tenant-berth');
  await cluster.client.create(TENANT_POLICIES, {
    metadata: { name: policy() },
    // As an operator would write it: the API server fills in the rest.
    spec: {
      namespaceLabels: { 'kubernetes.io/metadata.name': tenant },
      objects: { instances: 3, sshKeys: 1 },
      gpus: [{ max: 1 }],
    } as unknown as TenantPolicySpec,
  });
  call = clientOf(cluster.api.url, await cluster.key(tenant));
  removeNode = await addNode(cluster.client, gpuNode('node-test-gpu-tenant', PRODUCT, 8));
  controller = await startBerth(inject('cluster').kubeconfig, 'controller', own);
  // Kubernetes finds out about new kinds every half minute. Until then the controller takes the quota back.
  await waitFor(
    'the quota to be counted',
    async () => (await quota().catch(() => undefined))?.status?.used?.['count/sshkeys.berth.dev'] !== undefined,
    120_000,
  );
}, 180_000);

afterAll(async () => {
  for (const { metadata } of (await cluster.client.list(GPU_INSTANCES, { namespace: tenant })).items) {
    await cluster.client.delete(GPU_INSTANCES, metadata);
  }
  await waitFor(
    'the instances to go',
    async () => (await cluster.client.list(GPU_INSTANCES, { namespace: tenant })).items.length === 0,
  );
  await cluster.client.delete(TENANT_POLICIES, { name: policy() });
  await controller[Symbol.asyncDispose]();
  await removeNode();
  await cluster[Symbol.asyncDispose]();
});

function create(name: string, spec: object = {}): Promise<unknown> {
  const wanted = { gpu: { product: PRODUCT }, ...spec } as unknown as GpuInstanceSpec;
  return cluster.client.create(GPU_INSTANCES, { metadata: { namespace: tenant, name }, spec: wanted });
}

async function reason(name: string): Promise<string | undefined> {
  return readyReason(await cluster.client.get(GPU_INSTANCES, { namespace: tenant, name }));
}

it('a tenant has a TenantLimit and a quota from the policy, and the policy counts it', async () => {
  expect((await limit()).spec).toMatchObject({ policies: [policy()], objects: { instances: 3, sshKeys: 1 } });
  expect((await quota()).spec?.hard).toEqual({
    'count/gpuinstances.berth.dev': '3',
    'count/sshkeys.berth.dev': '1',
    'count/instancetemplates.berth.dev': '1k',
    'count/apikeys.berth.dev': '1k',
    'count/registrycredentials.berth.dev': '100',
    'count/webhooks.berth.dev': '10',
  });
  await waitFor('the status of the policy', async () => {
    const { status } = await cluster.client.get(TENANT_POLICIES, { name: policy() });
    return status?.tenants === 1 && findCondition(status.conditions, 'Ready')?.reason === 'Accepted';
  });
});

it('what somebody changes or deletes there comes back', async () => {
  const before = await limit();
  await cluster.client.patch(TENANT_LIMITS, before.metadata, { spec: { objects: { sshKeys: 99 } } }, { type: 'merge' });
  await cluster.client.delete(RESOURCE_QUOTAS, { namespace: tenant, name: 'berth' });
  await waitFor('both as they were', async () => {
    const hard = (await quota().catch(() => undefined))?.status?.used;
    return hard !== undefined && (await limit()).spec.objects.sshKeys === 1;
  });
  expect((await limit()).spec).toEqual(before.spec);
});

it('the second SSH key is one too many, at the API server and over HTTP', async () => {
  expect((await call('POST', '/ssh-keys', { public_key: PUBLIC_KEY, name: 'first' })).status).toBe(201);
  const second = { metadata: { namespace: tenant, name: 'second' }, spec: { publicKey: PUBLIC_KEY, displayName: '' } };
  await expect(cluster.client.create(SSH_KEYS, second)).rejects.toThrow('exceeded quota: berth');
  const refused = await call('POST', '/ssh-keys', { public_key: PUBLIC_KEY, name: 'second' });
  expect([refused.status, refused.error['code']]).toEqual([403, 'tenant_limit']);
  expect(refused.error['message']).toContain('may have 1 SSH keys and has 1');
  await set({ objects: { sshKeys: 2 } });
  await waitFor('room for another', async () => {
    const { status } = await call('POST', '/ssh-keys', { public_key: PUBLIC_KEY, name: 'second' });
    return status === 201;
  });
});

it('a second GPU waits, is refused over HTTP, and comes when the first one goes', async () => {
  await create('one');
  await waitFor('the first to run', async () => (await reason('one')) === 'Running');
  await create('two');
  await waitFor('the second to wait', async () => (await reason('two')) === 'TenantLimit');
  const { data } = await call('GET', '/offers');
  const offer = data.find((one) => one['gpu_name'] === PRODUCT && one['gpu_count'] === 1);
  const refused = await call('POST', '/instances', { ask_id: offer?.['id'] });
  expect([refused.status, refused.error['code']]).toEqual([403, 'tenant_limit']);
  expect(refused.error['message']).toContain(`The operator can change gpus in TenantPolicy ${policy()}`);
  const limits = await call('GET', '/limits');
  expect(limits.json).toMatchObject({
    policies: [policy()],
    gpus_used: 1,
    gpus: [{ pool: null, gpu_name: null, used: 1, limit: 1 }],
    ssh_keys: { used: 2, limit: 2 },
    api_keys: { used: 1, limit: 1000 },
  });
  const { warnings } = (await call('GET', '/instances/one')).json;
  expect(warnings).toContain(`You hold 1 of 1 GPUs. The operator can change gpus in TenantPolicy ${policy()}.`);
  await cluster.client.delete(GPU_INSTANCES, { namespace: tenant, name: 'one' });
  await waitFor('the second to run', async () => (await reason('two')) === 'Running');
  await set({ gpus: [{ max: 2 }] });
});

it('a lowered ceiling ends nothing, and a raised one lets those in that wait', async () => {
  await set({ gpus: [{ max: 0 }] });
  await waitFor('the ceiling', async () => (await limit()).spec.gpus[0]?.max === 0);
  await create('three');
  await waitFor('the third to wait', async () => (await reason('three')) === 'TenantLimit');
  expect(await reason('two')).toBe('Running');
  await set({ gpus: [{ max: 2 }] });
  await waitFor('the third to run', async () => (await reason('three')) === 'Running');
});

it('a policy that the API server takes and Berth cannot read closes what it covers', async () => {
  // A space that is none for the regular expressions of the API server.
  await set({ images: ['ghcr.io/acme\u00a0/*'] });
  await waitFor('the closed ceilings', async () => (await limit()).spec.objects.instances === 0);
  expect((await limit()).spec).toMatchObject({ images: [], userNamespaces: 'Required', policies: [policy()] });
  expect(await reason('two')).toBe('Running');
  const { status } = await waitFor('the policy to say so', async () => {
    const seen = await cluster.client.get(TENANT_POLICIES, { name: policy() });
    return findCondition(seen.status?.conditions, 'Ready')?.status === 'False' && seen;
  });
  expect(findCondition(status?.conditions, 'Ready')).toMatchObject({ reason: 'Unreadable' });
  await set({ images: ['*'] });
  await waitFor('the ceilings as before', async () => (await limit()).spec.objects.instances === 3);
});

const CHART = parseAllDocuments(
  readFileSync(new URL('../../../deploy/base/admission.yaml', import.meta.url), 'utf8'),
).map((one) => one.toJS() as { kind: string; metadata: { name: string }; spec: object });

/** Puts one admission policy of the chart in force in one namespace. Returns the function that ends it. */
async function enforce(name: string, namespace: string): Promise<() => Promise<void>> {
  const own = { name: `test-${name}` };
  const [rule, binding] = ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'].map((kind) =>
    CHART.find((one) => one.kind === kind && one.metadata.name === `berth-${name}`),
  );
  const matchResources = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } } };
  const spec = { ...binding?.spec, policyName: own.name, matchResources };
  const paths = ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'].map(
    (kind) => `${ADMISSION}/${kind}`,
  );
  await cluster.client.raw('POST', paths[0] ?? '', { ...rule, metadata: own });
  await cluster.client.raw('POST', paths[1] ?? '', { ...binding, metadata: own, spec });
  return async () => {
    for (const path of paths.toReversed()) await cluster.client.raw('DELETE', `${path}/${own.name}`);
  };
}

describe('what the chart lets nobody do to the ceilings', () => {
  const ends: (() => Promise<void>)[] = [];
  let namespace: string;

  /** What the API server says to a cluster administrator of this name. */
  async function as(user: string, args: readonly string[], input?: object): Promise<string> {
    const { programs, kubeconfig } = inject('cluster');
    const program = programs === undefined ? 'kubectl' : join(programs, 'kubectl');
    const who = ['--kubeconfig', kubeconfig, '-n', namespace, '--as', user, '--as-group', 'system:masters'];
    const { code, stdout, stderr } = await run(program, [...who, ...args], { input: JSON.stringify(input ?? {}) });
    return code === 0 ? 'done' : `${stdout}${stderr}`;
  }
  const make = (user: string, object: object): Promise<string> => as(user, ['create', '-f', '-'], object);
  const CONTROLLER = 'system:serviceaccount:berth-system:berth-controller';
  const labels = { 'app.kubernetes.io/managed-by': 'berth' };
  const HARD = { 'count/sshkeys.berth.dev': '1' };
  const quotaNamed = (name: string, hard: object, own: object = labels): object => ({
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name, labels: own },
    spec: { hard },
  });
  const limits = { apiVersion: 'berth.dev/v1alpha1', kind: 'TenantLimit', metadata: { name: 'berth' }, spec: {} };

  beforeAll(async () => {
    namespace = await cluster.namespace('tenant-attacks');
    ends.push(await enforce('limits', namespace), await enforce('quotas', namespace));
    await waitFor('both policies to hold', async () => {
      const [limited, counted] = [await make('eve', limits), await make(CONTROLLER, quotaNamed('other', HARD, {}))];
      // Each by the one that may always delete it.
      await as(CONTROLLER, ['delete', 'tenantlimit', 'berth']);
      await as('eve', ['delete', 'resourcequota', 'other']);
      return limited !== 'done' && counted !== 'done';
    });
  });

  afterAll(async () => {
    for (const end of ends) await end();
  });

  it('the controller writes TenantLimit and quota, and other writers do not', async () => {
    expect(await make('eve', limits)).toContain("only Berth's controller writes tenantlimits of tenants");
    expect(await make('eve', quotaNamed('berth', HARD))).toContain("only Berth's controller writes resourcequotas");
    expect(await make(CONTROLLER, limits)).toBe('done');
    expect(await make(CONTROLLER, quotaNamed('berth', HARD))).toBe('done');
    for (const kind of ['tenantlimit', 'resourcequota']) {
      const patch = ['patch', kind, 'berth', '--type=merge', '-p', '{"metadata":{"labels":null}}'];
      expect(await as('eve', patch)).toContain("only Berth's controller writes");
      expect(await as('eve', ['delete', kind, 'berth'])).toContain("only Berth's controller writes");
    }
    // Other quotas are no business of Berth.
    expect(await make('eve', quotaNamed('mine', { pods: '5' }, {}))).toBe('done');
    expect(await as('eve', ['delete', 'resourcequota', 'mine'])).toBe('done');
  });

  it.each([
    ['a quota of another name', 'other', HARD],
    ['a quota over pods', 'berth', { pods: '0' }],
    ['a quota over pods beside its own', 'berth', { ...HARD, 'count/pods': '0' }],
  ])('the controller does not make %s', async (_what, name, hard) => {
    expect(await make(CONTROLLER, quotaNamed(name, hard))).toContain(
      "Berth's controller writes the ResourceQuota berth",
    );
  });
});

describe('the admission policy for ceilings', () => {
  let end: () => Promise<void>;

  beforeAll(async () => {
    end = await enforce('ceilings', tenant);
    await set({ images: ['ghcr.io/acme/*', 'docker.io/library/debian:12'], runtimeClassNames: ['kata'] });
    await waitFor('the policy to hold', async () => (await tried('probe', { image: 'evil.example/a' })) !== 'taken');
  });

  afterAll(() => end());

  /** What the API server says to an instance, which is not kept. */
  async function tried(instance: string, spec: object): Promise<string> {
    const path = `/apis/berth.dev/v1alpha1/namespaces/${tenant}/gpuinstances?dryRun=All`;
    const body = { apiVersion: 'berth.dev/v1alpha1', kind: 'GPUInstance', metadata: { name: instance }, spec };
    try {
      await cluster.client.raw('POST', path, body);
      return 'taken';
    } catch (error) {
      if (error instanceof ForbiddenError) return error.statusMessage;
      throw error;
    }
  }

  it.each([
    ['ghcr.io/acme/app:1', true],
    ['debian:12', true],
    ['docker.io/debian:12', true],
    ['index.docker.io/library/debian:12', true],
    ['', true],
    ['debian:13', false],
    ['acme/app', false],
    ['ghcr.io/acme-evil/app', false],
    ['ghcr.io.evil.example/acme/app', false],
  ])('image %j is taken: %s', async (image, taken) => {
    const answer = await tried('image', { image });
    if (taken) expect(answer).toBe('taken');
    else {
      expect(answer).toContain(
        'the ceiling images allows this tenant ghcr.io/acme/*, docker.io/library/debian:12, and not',
      );
      expect(answer).toContain(`the operator can change images in TenantPolicy ${policy()}`);
    }
  });

  it('holds for templates, for RuntimeClasses, and over HTTP', async () => {
    const spec = { displayName: '', image: 'acme/app' } as InstanceTemplateSpec;
    const template = { metadata: { namespace: tenant, name: 'evil' }, spec };
    await expect(cluster.client.create(INSTANCE_TEMPLATES, template)).rejects.toThrow('and not docker.io/acme/app');
    expect(await tried('kata', { runtimeClassName: 'kata' })).toBe('taken');
    expect(await tried('runc', { runtimeClassName: 'runc' })).toContain('does not allow this tenant RuntimeClass runc');
    const { status, error } = await call('POST', '/instances', { template_image: 'acme/app' });
    expect([status, error['code']]).toEqual([403, 'tenant_limit']);
    expect(error['message']).toContain('Nothing was made. the ceiling images allows');
  });

  it('leaves an instance changeable whose image is not allowed any more', async () => {
    const changed = await cluster.client.patch(
      GPU_INSTANCES,
      { namespace: tenant, name: 'two' },
      { metadata: { labels: { a: 'b' } } },
      { type: 'merge' },
    );
    expect(changed.metadata.labels).toEqual({ a: 'b' });
    await expect(
      cluster.client.patch(
        GPU_INSTANCES,
        { namespace: tenant, name: 'two' },
        { spec: { image: 'evil.example/a' } },
        { type: 'merge' },
      ),
    ).rejects.toThrow('and not evil.example/a');
  });
});

it('is over when the namespace goes', async () => {
  const other = await cluster.namespace('tenant-gone');
  await cluster.client.patch(
    NAMESPACES,
    { name: other },
    { metadata: { labels: { 'berth.dev/tenant': 'true' } } },
    { type: 'merge' },
  );
  await waitFor('its quota', () =>
    cluster.client.get(RESOURCE_QUOTAS, { namespace: other, name: 'berth' }).catch(() => undefined),
  );
  await cluster.client.delete(NAMESPACES, { name: other });
  await waitFor('the namespace to go', async () => {
    return (await cluster.client.get(NAMESPACES, { name: other }).catch(() => undefined)) === undefined;
  });
});
