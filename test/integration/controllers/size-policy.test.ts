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
  const crowd = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`a${n}`, '']));
  const crowded = object(kind, 'crowded', spec, { annotations: crowd });
  expect(await as(TENANT, ['create', '--validate=false'], crowded)).toMatch(REFUSED);
  const many = await as(TENANT, ['create', '--validate=false'], object(kind, 'many', spec, { finalizers }));
  expect(many).toContain('more than 32 finalizers and owners');
  const ownerReferences = Array.from({ length: 20 }, (_, n) => {
    return { apiVersion: 'x.example/v1', kind: 'X', uid: `u-${n}`, name: 'x'.repeat(4000) };
  });
  const owned = await as(TENANT, ['create', '--validate=false'], object(kind, 'owned', spec, { ownerReferences }));
  expect(owned).toMatch(REFUSED);
});

test('a tenant has no copy of long keys kept for each of many managers', async () => {
  const annotations = Object.fromEntries(
    Array.from({ length: 120 }, (_, n) => [`example.com/${String(n).padStart(3, '0')}${'x'.repeat(55)}`, '']),
  );
  const apply = (manager: number) =>
    as(
      TENANT,
      ['apply', '--server-side', `--field-manager=m${manager}`],
      object('GPUInstance', 'managed', {}, { annotations }),
    );
  const said = [];
  for (let manager = 0; manager < 17; manager += 1) said.push(await apply(manager));
  expect(said.slice(0, 10)).toEqual(Array.from({ length: 10 }, () => 'done'));
  expect(said.at(-1)).toContain('too many field managers');
});

const entry = (manager: string, fieldsV1: object) => {
  return { manager, operation: 'Apply', apiVersion: 'berth.dev/v1alpha1', fieldsType: 'FieldsV1', fieldsV1 };
};
const deep = (levels: number): object => (levels === 0 ? {} : { [`f:a${levels}`]: deep(levels - 1) });

test.each<[string, object[]]>([
  ['managers of a field each', Array.from({ length: 1000 }, (_, n) => entry(`m${n}`, { 'f:spec': { 'f:image': {} } }))],
  ['long path', [entry('long', { 'f:spec': { [`f:${'x'.repeat(200_000)}`]: {} } })]],
  [
    'number of paths',
    [entry('many', { 'f:spec': Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`f:${n}`, {}])) })],
  ],
  [
    'number of managers and paths',
    Array.from({ length: 60 }, (_, n) =>
      entry(`m${n}`, { 'f:spec': Object.fromEntries(Array.from({ length: 500 }, (_, m) => [`f:${m}`, {}])) }),
    ),
  ],
  ['depth of paths', [entry('deep', deep(500))]],
])('a tenant writes no managedFields with any %s', async (_what, managedFields) => {
  const made = (name: string, metadata: object) =>
    object('SSHKey', name, { publicKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ' }, metadata);
  const refused = /too many field managers|cost limit/;
  expect(await as(TENANT, CREATE, made('filled', { managedFields }))).toMatch(refused);
  const name = `later-${managedFields.length}-${JSON.stringify(managedFields).length}`;
  expect(await as(TENANT, CREATE, made(name, {}))).toBe('done');
  expect(await as(TENANT, ['replace'], made(name, { managedFields }))).toMatch(refused);
});

test('ten managers apply an instance with all that it may have', async () => {
  const annotations = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`example.com/key-${n}`, `${n}`]));
  const spec = { env: variables(128, 'x'), imagePullSecrets: [{ name: 'one' }], sshKeyIds: [1, 2, 3] };
  for (let manager = 0; manager < 10; manager += 1) {
    const command = ['apply', '--server-side', `--field-manager=m${manager}`];
    expect(await as(TENANT, command, object('GPUInstance', 'whole', spec, { annotations }))).toBe('done');
  }
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
