import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { type BilledCall, TokenPage } from '../../../src/gateway/billing/token-page.ts';
import { AlreadyExistsError } from '../../../src/kube/errors.ts';
import { NAMESPACES } from '../../../src/kube/types.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { CREATED_BY, STARTED_BY } from '../../../src/resources/instances/gpu-instance.ts';
import { account, BERTH_EDIT } from '../../support/accounts.ts';
import { holdPolicies, kubectlAs } from '../../support/chart-policies.ts';
import { waitFor } from '../../support/wait-for.ts';

// The admission policies of the chart about what a role may write beyond its duty, in one namespace: a role whose token
// is in the wrong hands.

const OWN = 'berth-system';
const role = (name: string): string => `system:serviceaccount:${OWN}:berth-${name}`;
const namespace = `roles-${Math.random().toString(36).slice(2, 8)}`;
const FINALIZER = 'no role of Berth changes any other finalizer';
const OWNERS = 'no role of Berth changes the owners';
const PODS = 'changes nothing in the spec of one that is there';
const OWNER = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: '11111111-1111-4111-8111-111111111111' };

let client: KubeClient;
const policies: AsyncDisposable[] = [];

const as = (user: string, command: readonly string[], input?: object, where = namespace): Promise<string> =>
  kubectlAs({ namespace: where, user }, [...command, ...(input === undefined ? [] : ['-f', '-'])], input);

function patch(user: string, kind: string, body: object, ...options: readonly string[]): Promise<string> {
  return as(user, ['patch', kind, 'one', '--type=merge', ...options, '-p', JSON.stringify(body)]);
}

const RENTER = `system:serviceaccount:${namespace}:renter`;

/** As somebody who has no rights but those of a renter. */
const asTenant = (command: readonly string[], input?: object): Promise<string> =>
  kubectlAs({ namespace, user: RENTER, groups: [] }, command, input);

function paidBy(name: string, text: string | null): string {
  return JSON.stringify({ metadata: { annotations: { [name]: text } } });
}

function object(kind: string, spec: object, metadata: object = {}): object {
  return { apiVersion: 'berth.dev/v1alpha1', kind, metadata: { name: 'one', ...metadata }, spec };
}

const INSTANCE = { powerState: 'Stopped' };
const KEY = { hash: 'a'.repeat(64), scopes: ['models'] };
const USED = { lastUsedTime: '2026-11-23T12:00:00Z' };
const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'one', labels: { 'berth.dev/instance': 'one' } },
  spec: { containers: [{ name: 'main', image: 'any' }], nodeSelector: { none: 'none' } },
};

const CALL: BilledCall = {
  namespace,
  tenant: namespace,
  by: 'key/ci',
  model: 'qwen',
  prices: { input: '3.333333', cachedInput: '0', output: '7.77', currency: 'USD' },
};
const USAGE = { inputTokens: 1200, cachedTokens: 200, cacheWriteTokens: 0, outputTokens: 70_000, reasoningTokens: 0 };

/** What one replica of the gateway counted: one call. */
function pageOf(name: string): TokenPage {
  const page = new TokenPage({ namespace, tenant: namespace, day: '2026-11-23', currency: 'USD', name, replica: name });
  page.add(CALL, USAGE, false);
  return page;
}

/** The record that a replica writes of it. */
function recordOf(page: TokenPage, metadata: object = {}): object {
  const record = page.record();
  const { apiVersion } = object('TokenRecord', {}) as { apiVersion: string };
  return { apiVersion, kind: 'TokenRecord', ...record, metadata: { ...record.metadata, ...metadata } };
}

beforeAll(async () => {
  client = createKubeClient(await loadKubeConfig({ kubeconfig: inject('cluster').kubeconfig }), {
    clock: systemClock(),
  });
  await client.create(NAMESPACES, { metadata: { name: namespace } });
  await client.create(NAMESPACES, { metadata: { name: OWN } }).catch((error: unknown) => {
    if (!(error instanceof AlreadyExistsError)) throw error;
  });
  await client
    .raw('POST', `/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name: 'default' } })
    // Kubernetes makes it too.
    .catch(() => undefined);
  policies.push(
    await holdPolicies(
      client,
      [
        'berth-roles',
        'berth-activity',
        'berth-controller',
        'berth-payers',
        'berth-status',
        'berth-bills',
        'berth-cleanup',
      ],
      namespace,
    ),
  );
  policies.push(await holdPolicies(client, ['berth-own-namespace'], OWN));
  await account(client, namespace, 'renter', BERTH_EDIT);
  expect(await as('operator', ['create'], object('GPUInstance', INSTANCE))).toBe('done');
  expect(await as('operator', ['create'], object('APIKey', KEY))).toBe('done');
  expect(await as('operator', ['create'], POD)).toBe('done');
  // What is written before they are would be no change after it.
  const dry = '--dry-run=server';
  await waitFor('the policies to be in force', async () => {
    const probes = [
      await patch(role('api'), 'gpuinstance', { metadata: { finalizers: ['x.io/y'] } }, dry),
      await patch(role('ssh'), 'gpuinstance', { spec: { powerState: 'Running' } }, dry),
      await patch(role('controller'), 'pod', { spec: { activeDeadlineSeconds: 1 } }, dry),
      await as('alice', ['create', dry], object('APIKey', KEY), OWN),
      await asTenant(['patch', 'gpuinstance', 'one', '--type=merge', dry, '-p', paidBy(STARTED_BY, 'x')]),
      await patch('alice', 'apikey', { status: USED }, '--subresource=status', dry),
      await as(role('api'), ['create', dry], recordOf(pageOf('probe'), { labels: {} })),
    ];
    return probes.every((said) => said !== 'done');
  });
});

afterAll(async () => {
  for (const held of policies) await held[Symbol.asyncDispose]();
  await client.delete(NAMESPACES, { name: namespace });
  await client.close();
});

test.each(['api', 'dashboard'])('the role %s gives no object a finalizer or an owner', async (name) => {
  for (const kind of ['gpuinstance', 'apikey']) {
    expect(await patch(role(name), kind, { metadata: { finalizers: ['x.io/y'] } })).toContain(FINALIZER);
    expect(await patch(role(name), kind, { metadata: { ownerReferences: [OWNER] } })).toContain(OWNERS);
  }
  const made = object('InstanceTemplate', { image: 'debian:12' }, { finalizers: ['x.io/y'], name: 'two' });
  expect(await as(role(name), ['create'], made)).toContain(FINALIZER);
  const owned = object('GPUInstance', INSTANCE, { ownerReferences: [OWNER], name: 'two' });
  expect(await as(role(name), ['create'], owned)).toContain(OWNERS);
});

test('the controller adds and removes its own finalizer, and keeps those of others', async () => {
  const write = (...finalizers: string[]): Promise<string> =>
    patch(role('controller'), 'gpuinstance', { metadata: { finalizers } });
  const tenant = (...finalizers: string[]): Promise<string> =>
    patch('alice', 'gpuinstance', { metadata: { finalizers } });
  expect(await write('berth.dev/cleanup')).toBe('done');
  expect(await write('berth.dev/cleanup', 'x.io/y')).toContain(FINALIZER);
  expect(await tenant('berth.dev/cleanup', 'x.io/y')).toBe('done');
  expect(await write('berth.dev/cleanup')).toContain(FINALIZER);
  expect(await write('x.io/y')).toBe('done');
  expect(await tenant()).toBe('done');
});

test('the controller changes no spec, label or owner of an instance, and notes its disk', async () => {
  const NEITHER = 'neither spec nor labels';
  expect(await patch(role('controller'), 'gpuinstance', { spec: { powerState: 'Running' } })).toContain(NEITHER);
  expect(await patch(role('controller'), 'gpuinstance', { spec: { image: 'evil:1' } })).toContain(NEITHER);
  expect(await patch(role('controller'), 'gpuinstance', { metadata: { labels: { a: 'b' } } })).toContain(NEITHER);
  expect(await patch(role('controller'), 'gpuinstance', { metadata: { ownerReferences: [OWNER] } })).toContain(OWNERS);
  const annotations = { 'berth.dev/disk': 'one-disk' };
  expect(await patch(role('controller'), 'gpuinstance', { metadata: { annotations } })).toBe('done');
  expect(await patch('alice', 'gpuinstance', { spec: { displayName: 'mine' } })).toBe('done');
});

test('the controller ends no pod by its spec, and gives it its labels', async () => {
  expect(await patch(role('controller'), 'pod', { spec: { activeDeadlineSeconds: 1 } })).toContain(PODS);
  expect(await as(role('controller'), ['set', 'image', 'pod/one', 'main=evil:1'])).toContain(PODS);
  expect(await patch(role('controller'), 'pod', { metadata: { labels: { a: 'b' } } })).toBe('done');
});

test('the dashboard revokes a key, and changes nothing else of it', async () => {
  const REVOKES = 'makes API keys and revokes them';
  for (const spec of [
    { scopes: ['compute:write'] },
    { displayName: 'other' },
    { models: ['small'] },
    { expiresAt: '2099-01-01T00:00:00Z' },
    { limits: { requestsPerMinute: 1 } },
  ]) {
    expect(await patch(role('dashboard'), 'apikey', { spec }), JSON.stringify(spec)).toContain(REVOKES);
  }
  expect(await patch(role('dashboard'), 'apikey', { metadata: { annotations: { a: 'b' } } })).toContain(REVOKES);
  expect(await patch(role('dashboard'), 'apikey', { spec: { revoked: true } })).toBe('done');
});

test('the ssh role writes when an instance was used, and no long text', async () => {
  const write = (text: string): Promise<string> =>
    patch(role('ssh'), 'gpuinstance', { metadata: { annotations: { 'berth.dev/last-activity': text } } });
  expect(await write(new Date(0).toISOString())).toBe('done');
  expect(await patch(role('ssh'), 'gpuinstance', { metadata: { finalizers: ['x.io/y'] } })).toContain(
    'and nothing else',
  );
  expect(await write('x'.repeat(100_000))).toContain('a time and no other text');
  expect(await write('2026-01-01T00:00:00Z and more')).toContain('a time and no other text');
});

test.each([CREATED_BY, STARTED_BY])(
  'the api role alone writes %s, a tenant may leave it or take it away, and a backup brings it back',
  async (name) => {
    const write = (text: string | null): Promise<string> =>
      asTenant(['patch', 'gpuinstance', 'one', '--type=merge', '-p', paidBy(name, text)]);
    const refused = `only Berth's api role writes the annotation ${name}`;
    const other = object('GPUInstance', INSTANCE, { name: 'payer', annotations: { [name]: 'key/other' } });
    const make = ['create', '--dry-run=server', '-f', '-'];
    expect(await as(role('api'), ['patch', 'gpuinstance', 'one', '--type=merge', '-p', paidBy(name, 'key/mine')])).toBe(
      'done',
    );
    expect(await write('key/other')).toContain(refused);
    expect(await asTenant(make, other)).toContain(refused);
    // Who may write the status of all instances restores them.
    expect(await as('operator', ['create', '--dry-run=server'], other)).toBe('done');
    expect(
      await asTenant(['patch', 'gpuinstance', 'one', '--type=merge', '-p', '{"spec":{"displayName":"mine"}}']),
    ).toBe('done');
    expect(await write(null)).toBe('done');
    expect(await write('key/mine')).toContain(refused);
  },
);

test.each(['alice', role('dashboard'), role('api')])(
  "%s makes no key and no instance in Berth's namespace",
  async (user) => {
    for (const made of [
      object('APIKey', KEY),
      object('GPUInstance', INSTANCE),
      object('SSHKey', { publicKey: `ssh-ed25519 ${'A'.repeat(68)}` }),
    ]) {
      const said = await as(user, ['create', '--dry-run=server'], made, OWN);
      expect(said).toContain("this namespace is Berth's own and no tenant");
      expect(said).not.toContain('kubectl label');
    }
  },
);

test('the api role notes when a key was used, and writes nothing else of its status', async () => {
  const write = (user: string, status: object): Promise<string> =>
    patch(user, 'apikey', { status }, '--subresource=status');
  const condition = {
    type: 'Ready',
    status: 'True',
    reason: 'Ready',
    lastTransitionTime: USED.lastUsedTime,
    message: '',
  };
  for (const status of [
    { conditions: [condition] },
    { observedGeneration: 7 },
    { budget: { month: '2026-11', renewsAt: USED.lastUsedTime, at: USED.lastUsedTime, percent: 0, lines: [] } },
    { ...USED, observedGeneration: 7 },
  ]) {
    expect(await write(role('api'), status), JSON.stringify(status)).toContain('nothing else of its status');
  }
  expect(await write(role('api'), USED)).toBe('done');
  expect(await write(role('controller'), { conditions: [condition] })).toBe('done');
  expect(await write(role('api'), { lastUsedTime: '2026-11-23T12:05:00Z' })).toBe('done');
  expect(await write(role('api'), { conditions: null })).toContain('nothing else of its status');
});

test.each(['api', 'dashboard'])(
  "the role %s writes no template in Berth's namespace, and shares none",
  async (name) => {
    const made = object('InstanceTemplate', { image: 'debian:12' }, { name: 'house' });
    const own = "this namespace is Berth's own and no tenant";
    expect(await as(role(name), ['create'], made, OWN)).toContain(own);
    expect(await as('operator', ['create'], made, OWN)).toBe('done');
    const change = ['patch', 'instancetemplate', 'house', '--type=merge', '-p', '{"spec":{"image":"evil:1"}}'];
    expect(await as(role(name), change, undefined, OWN)).toContain(own);
    expect(await as(role(name), ['delete', 'instancetemplate', 'house'], undefined, OWN)).toContain(own);
    expect(await as('operator', change, undefined, OWN)).toBe('done');
    expect(await as('operator', ['delete', 'instancetemplate', 'house'], undefined, OWN)).toBe('done');

    const labels = { 'berth.dev/shared': 'true' };
    const shared = object('InstanceTemplate', { image: 'debian:12' }, { name: 'three', labels });
    expect(await as(role(name), ['create'], shared)).toContain('whether all tenants see');
    expect(await as('alice', ['create'], shared)).toBe('done');
    const patchThree = (body: object): Promise<string> =>
      as(role(name), ['patch', 'instancetemplate', 'three', '--type=merge', '-p', JSON.stringify(body)]);
    expect(await patchThree({ metadata: { labels: { 'berth.dev/shared': null } } })).toContain(
      'whether all tenants see',
    );
    expect(await patchThree({ spec: { image: 'debian:13' } })).toBe('done');
    expect(await as(role(name), ['delete', 'instancetemplate', 'three'])).toBe('done');
  },
);

test('credentials of a registry keep the finalizer of the controller, whoever would take it off', async () => {
  const made = (finalizers: string[]): object =>
    object('RegistryCredential', { server: 'ghcr.io', username: 'alice' }, { finalizers });
  const write = (user: string, finalizers: string[]): Promise<string> =>
    patch(user, 'registrycredential', { metadata: { finalizers } });
  expect(await as(role('api'), ['create'], made(['x.io/y']))).toContain(FINALIZER);
  expect(await as(role('api'), ['create'], made(['berth.dev/cleanup']))).toBe('done');
  for (const user of ['alice', role('api')])
    expect(await write(user, [])).toMatch(/only Berth's controller takes the finalizer|changes any other finalizer/);
  expect(await write(role('controller'), ['berth.dev/cleanup', 'x.io/y'])).toContain(FINALIZER);
  expect(await write(role('controller'), [])).toBe('done');
});

const GATEWAY = ['apply', '--server-side', '--force-conflicts', '--field-manager=berth-gateway'];

test('replicas of the gateway write what they counted, again and again, and nobody lowers or moves it', async () => {
  const pages = [pageOf('first'), pageOf('second')];
  for (let round = 0; round < 3; round += 1) {
    for (const page of pages) {
      expect(await as(role('api'), GATEWAY, recordOf(page))).toBe('done');
      page.add(CALL, round === 0 ? undefined : USAGE, round === 1);
      page.add({ ...CALL, model: `model-${round}` }, USAGE, false);
    }
  }
  const stored = pages[0]?.record().spec;
  const change = (type: 'json' | 'merge', body: object): Promise<string> =>
    as(role('api'), ['patch', 'tokenrecord', 'first', `--type=${type}`, '-p', JSON.stringify(body)]);
  const GROWS = /of a token record only grow/;
  expect(await change('merge', { spec: { cost: '0.00' } })).toMatch(GROWS);
  expect(await change('merge', { spec: { cost: '1.088000' } })).toMatch(GROWS);
  expect(await change('merge', { spec: { calls: 1 } })).toMatch(GROWS);
  expect(await change('merge', { spec: { entries: stored?.entries.slice(0, 1) } })).toMatch(GROWS);
  expect(await change('json', [{ op: 'replace', path: '/spec/entries/0/cost', value: '0.00' }])).toMatch(GROWS);
  const MONTH = 'the label berth.dev/ended';
  for (const month of ['2025-10', null])
    expect(await change('merge', { metadata: { labels: { 'berth.dev/ended': month } } })).toContain(MONTH);
  const moved = recordOf(pageOf('third'), { labels: { 'berth.dev/ended': '2026-10' } });
  expect(await as(role('api'), ['create'], moved)).toContain(MONTH);
  expect(await as(role('api'), ['create'], recordOf(pageOf('third'), { ownerReferences: [OWNER] }))).toContain(OWNERS);
});

test('only an account that may delete the bills of all tenants deletes one', async () => {
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
  const rules = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];
  await client.raw('POST', `${rbac}/roles`, { metadata: { name: 'all' }, rules });
  const apiGroup = 'rbac.authorization.k8s.io';
  await client.raw('POST', `${rbac}/rolebindings`, {
    metadata: { name: 'all' },
    roleRef: { apiGroup, kind: 'Role', name: 'all' },
    subjects: ['mallory', role('api')].map((name) => ({ apiGroup, kind: 'User', name })),
  });
  expect(await as(role('api'), GATEWAY, recordOf(pageOf('kept')))).toBe('done');
  for (const user of ['mallory', role('api')])
    for (const which of [['kept'], ['--all']]) {
      const command = ['delete', 'tokenrecord', ...which];
      expect(await kubectlAs({ namespace, user, groups: [] }, command)).toContain('tokenrecords are what was billed');
    }
  expect(await as('operator', ['delete', 'tokenrecord', 'kept'])).toBe('done');
});
