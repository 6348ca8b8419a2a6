import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { NAMESPACES } from '../../../src/kube/types.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { holdPolicies, kubectlAs } from '../../support/chart-policies.ts';
import { waitFor } from '../../support/wait-for.ts';

// The admission policy of the chart about the bytes of objects, in one namespace.

const NAME = 'berth-sizes';
const API = 'system:serviceaccount:berth-system:berth-api';
const TENANT = 'alice';
const REFUSED = /have \d+ bytes together, and 65536 are possible/;
const namespace = `sizes-${Math.random().toString(36).slice(2, 8)}`;

let client: KubeClient;
let policies: AsyncDisposable;

async function as(user: string, command: readonly string[], input?: object): Promise<string> {
  const read = input === undefined ? [] : ['-f', '-'];
  return kubectlAs({ namespace, user }, [...command, ...read], input);
}

function object(kind: string, name: string, spec: object, metadata: object = {}): object {
  // Stopped, so that nothing starts.
  const whole = kind === 'GPUInstance' ? { powerState: 'Stopped', ...spec } : spec;
  return { apiVersion: 'berth.dev/v1alpha1', kind, metadata: { name, namespace, ...metadata }, spec: whole };
}

const CREATE = ['create'];
const APPLY = ['apply'];
const variables = (count: number, value: string) =>
  Array.from({ length: count }, (_, n) => ({ name: `V${String(n).padStart(3, '0')}`, value }));

beforeAll(async () => {
  client = createKubeClient(await loadKubeConfig({ kubeconfig: inject('cluster').kubeconfig }), {
    clock: systemClock(),
  });
  await client.create(NAMESPACES, { metadata: { name: namespace } });
  policies = await holdPolicies(client, [NAME], namespace);
  const probe = object('GPUInstance', 'probe', { env: variables(3, 'x'.repeat(30_000)) });
  await waitFor('the policy to be in force', async () =>
    REFUSED.test(await as(TENANT, ['create', '--dry-run=server'], probe)),
  );
});

afterAll(async () => {
  await policies[Symbol.asyncDispose]();
  await client.delete(NAMESPACES, { name: namespace });
  await client.close();
});

test.each<[string, object]>([
  ['environment', { env: variables(34, 'x'.repeat(32_000)) }],
  ['script, with what its characters take', { onStart: 'é'.repeat(33_000) }],
  ['arguments', { args: Array.from({ length: 17 }, () => 'x'.repeat(4096)), runtype: 'args' }],
  ['sum of them', { env: variables(10, 'x'.repeat(4000)), onStart: 'x'.repeat(26_000) }],
])('a tenant writes no %s that is too long', async (_what, spec) => {
  expect(await as(TENANT, CREATE, object('GPUInstance', 'long', spec))).toMatch(REFUSED);
  expect(await as(TENANT, CREATE, object('InstanceTemplate', 'long', spec))).toMatch(REFUSED);
});

test.each<[string, object, string]>([
  ['SSHKey', { publicKey: `ssh-ed25519 A${'='.repeat(16_000)}A` }, 'type, base64 key, optional comment'],
  ['SSHKey', { publicKey: 'hello' }, 'type, base64 key, optional comment'],
  ['GPUInstance', { image: 'docker.io/library/ok/../../evil:1' }, 'without .. and //'],
  ['InstanceTemplate', { image: 'docker.io//evil:1' }, 'without .. and //'],
])('a tenant writes no %s of another form: %j', async (kind, spec, said) => {
  expect(await as(TENANT, CREATE, object(kind, 'form', spec))).toContain(said);
});

test.each([
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH87DkjAM43pkSF8RdbLnuoFePocHvb+oWRYegK0u4OS me@host == two',
  'cert-authority,principals="alice, bob" ecdsa-sha2-nistp521\tAAAAE2VjZHNhLXNoYTItbmlzdHA1MjE=',
  ' sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAA==',
])('a tenant writes a public key as it is in a file: %s', async (publicKey) => {
  expect(await as(TENANT, [...CREATE, '--dry-run=server'], object('SSHKey', 'shape', { publicKey }))).toBe('done');
});

test('a tenant writes no long text that is of the HTTP interface alone', async () => {
  const refused = 'stats and requestedRuntype, which only clients of the HTTP interface need';
  expect(await as(TENANT, CREATE, object('GPUInstance', 'stats', { stats: 'x'.repeat(5000) }))).toContain(refused);
  expect(await as(TENANT, CREATE, object('GPUInstance', 'stats', { stats: 'x'.repeat(4000) }))).toBe('done');
});

test.each<[string, object]>([
  ['SSHKey', { publicKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ' }],
  ['APIKey', { hash: 'a'.repeat(64), prefix: 'berth', displayName: '' }],
  ['GPUInstance', {}],
])('a tenant hangs nothing long on an object: %s', async (kind, spec) => {
  const annotations = { long: 'x'.repeat(66_000) };
  const said = await as(TENANT, ['create', '--validate=false'], object(kind, 'heavy', spec, { annotations }));
  expect(said).toMatch(REFUSED);
  const finalizers = Array.from({ length: 40 }, (_, n) => `example.com/f-${n}`);
  const many = await as(TENANT, ['create', '--validate=false'], object(kind, 'many', spec, { finalizers }));
  expect(many).toContain('more than 32 finalizers and owners');
});

test('what fits is applied, with the copy that kubectl keeps', async () => {
  const spec = { env: variables(6, 'x'.repeat(4000)), onStart: 'x'.repeat(3000) };
  expect(await as(TENANT, APPLY, object('GPUInstance', 'fits', spec))).toBe('done');
  expect(await as(TENANT, APPLY, object('GPUInstance', 'fits', { ...spec, label: 'again' }))).toBe('done');
});

test('the api role is held to the share of its tenant alone, and what it made can be changed and does not grow', async () => {
  const stats = 'x'.repeat(200_000);
  expect(await as(API, CREATE, object('GPUInstance', 'http', { stats }))).toBe('done');
  const patch = (body: object) =>
    as(TENANT, ['patch', 'gpuinstance', 'http', '--type=merge', '-p', JSON.stringify(body)]);
  expect(await patch({ spec: { label: 'mine' } })).toBe('done');
  expect(await patch({ metadata: { annotations: { note: 'x'.repeat(1000) } } })).toMatch(REFUSED);
  expect(await patch({ spec: { stats: 'x'.repeat(100_000) } })).toBe('done');
});
