import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { AlreadyExistsError } from '../../../src/kube/errors.ts';
import { NAMESPACES } from '../../../src/kube/types.ts';
import { systemClock } from '../../../src/lib/clock.ts';
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

function object(kind: string, spec: object, metadata: object = {}): object {
  return { apiVersion: 'berth.dev/v1alpha1', kind, metadata: { name: 'one', ...metadata }, spec };
}

const INSTANCE = { powerState: 'Stopped' };
const KEY = { hash: 'a'.repeat(64), scopes: ['models'] };
const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'one', labels: { 'berth.dev/instance': 'one' } },
  spec: { containers: [{ name: 'main', image: 'any' }], nodeSelector: { none: 'none' } },
};

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
  policies.push(await holdPolicies(client, ['berth-roles', 'berth-activity', 'berth-controller'], namespace));
  policies.push(await holdPolicies(client, ['berth-own-namespace'], OWN));
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
