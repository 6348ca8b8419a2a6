import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { NAMESPACES, PODS } from '../../../src/kube/types.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { CLAIM_ANNOTATION } from '../../../src/resources/pod/owner.ts';
import { holdPolicies, kubectlAs } from '../../support/chart-policies.ts';
import { waitFor } from '../../support/wait-for.ts';

// The admission policies of the chart about claims on pods and what the controller may touch, in one namespace: other
// tests have pods with claims of theirs.

const NAMES = ['berth-claims', 'berth-controller'];
const CONTROLLER = 'system:serviceaccount:berth-system:berth-controller';
const TENANT = 'alice';
const REFUSED = "only Berth's controller writes the annotation berth.dev/claim";
const namespace = `claims-${Math.random().toString(36).slice(2, 8)}`;
const FOREIGN = "Berth's controller touches only what belongs to a GPUInstance";

let client: KubeClient;
let policies: AsyncDisposable;

const as = (user: string, command: readonly string[], input?: object): Promise<string> =>
  kubectlAs({ namespace, user }, command, input);

function pod(name: string, claim?: string): object {
  const annotations = claim === undefined ? {} : { annotations: { [CLAIM_ANNOTATION]: claim } };
  const spec = { containers: [{ name: 'main', image: 'any' }], nodeSelector: { none: 'none' } };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace, ...annotations }, spec };
}

function make(user: string, name: string, claim?: string): Promise<string> {
  return as(user, ['create', '-f', '-'], pod(name, claim));
}

function disk(name: string, claim?: string): object {
  const annotations = claim === undefined ? {} : { annotations: { [CLAIM_ANNOTATION]: claim } };
  const spec = {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: '1Gi' } },
    storageClassName: 'none',
  };
  return { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name, namespace, ...annotations }, spec };
}

function change(user: string, name: string, metadata: object, ...how: string[]): Promise<string> {
  return as(user, ['patch', 'pod', name, '--type=merge', '-p', JSON.stringify({ metadata }), ...how]);
}

function changeDisk(user: string, name: string, metadata: object): Promise<string> {
  return as(user, ['patch', 'pvc', name, '--type=merge', '-p', JSON.stringify({ metadata })]);
}

beforeAll(async () => {
  client = createKubeClient(await loadKubeConfig({ kubeconfig: inject('cluster').kubeconfig }), {
    clock: systemClock(),
  });
  await client.create(NAMESPACES, { metadata: { name: namespace } });
  await client.raw('POST', `/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name: 'default' } }).catch(
    // Kubernetes makes it too.
    () => undefined,
  );
  policies = await holdPolicies(client, NAMES, namespace);
  await waitFor('the policies to be in force', async () => {
    const [forged, foreign] = [await make(TENANT, 'probe', '{}'), await make(CONTROLLER, 'probe')];
    return forged.includes(REFUSED) && foreign.includes(FOREIGN);
  });
  expect(await make(TENANT, 'bare')).toBe('done');
  expect(await make(CONTROLLER, 'claimed', '{}')).toBe('done');
});

afterAll(async () => {
  await policies[Symbol.asyncDispose]();
  await client.delete(NAMESPACES, { name: namespace });
  await client.close();
});

test('only the controller makes a pod with a claim', async () => {
  expect(await make(TENANT, 'forged', '{}')).toContain(REFUSED);
});

test.each<[string, string, string | null, string[]]>([
  ['writes one to a pod', 'bare', '{}', []],
  ['changes one', 'claimed', '{"claim":{}}', []],
  ['takes one away', 'claimed', null, []],
  ['writes one with the status of a pod', 'bare', '{}', ['--subresource=status']],
  ['changes one with the status of a pod', 'claimed', '{"claim":{}}', ['--subresource=status']],
])('nobody else %s', async (_what, name, claim, how) => {
  const metadata = { annotations: { [CLAIM_ANNOTATION]: claim } };
  expect(await change(TENANT, name, metadata, ...how)).toContain(REFUSED);
  const { metadata: kept } = await client.get(PODS, { namespace, name });
  expect(kept.annotations?.[CLAIM_ANNOTATION]).toBe(name === 'bare' ? undefined : '{}');
});

test('nobody else writes one with a binding', async () => {
  const metadata = { name: 'bare', namespace, annotations: { [CLAIM_ANNOTATION]: '{}' } };
  const binding = { apiVersion: 'v1', kind: 'Binding', metadata, target: { kind: 'Node', name: 'any' } };
  const path = `/api/v1/namespaces/${namespace}/pods/bare/binding`;
  expect(await as(TENANT, ['create', '--raw', path, '-f', '-'], binding)).toContain(REFUSED);
});

test('everything else about a pod with a claim is left to who may change it', async () => {
  expect(await change(TENANT, 'claimed', { annotations: { 'example.com/note': 'mine' } })).toBe('done');
  expect(await change(TENANT, 'claimed', { labels: { a: 'b' } }, '--subresource=status')).toBe('done');
  expect(await change(CONTROLLER, 'claimed', { annotations: { [CLAIM_ANNOTATION]: '{"claim":1}' } })).toBe('done');
});

test('a disk comes back from a backup with it, and nobody else takes it off', async () => {
  expect(await as(TENANT, ['create', '-f', '-'], disk('one-disk', 'one'))).toBe('done');
  for (const claim of [null, 'other']) {
    const metadata = { annotations: { [CLAIM_ANNOTATION]: claim } };
    expect(await changeDisk(TENANT, 'one-disk', metadata)).toContain(REFUSED);
  }
  expect(await changeDisk(TENANT, 'one-disk', { labels: { a: 'b' } })).toBe('done');
});

test('the controller marks and deletes what bears it, when all other marks are gone, and nothing else', async () => {
  const metadata = { labels: { 'berth.dev/instance': 'one' } };
  expect(await as(TENANT, ['create', '-f', '-'], disk('kept-disk', 'kept'))).toBe('done');
  expect(await as(TENANT, ['create', '-f', '-'], disk('foreign-disk'))).toBe('done');
  expect(await changeDisk(CONTROLLER, 'kept-disk', metadata)).toBe('done');
  expect(await changeDisk(CONTROLLER, 'foreign-disk', metadata)).toContain(FOREIGN);
  expect(await as(CONTROLLER, ['delete', 'pvc', 'foreign-disk'])).toContain(FOREIGN);
  expect(await make(CONTROLLER, 'stripped', '{"instance":"one"}')).toBe('done');
  expect(await change(CONTROLLER, 'bare', metadata)).toContain(FOREIGN);
  expect(await change(CONTROLLER, 'stripped', metadata)).toBe('done');
  expect(await change(TENANT, 'stripped', { labels: { 'berth.dev/instance': null } })).toBe('done');
  expect(await as(CONTROLLER, ['delete', 'pod', 'stripped', '--wait=false'])).toBe('done');
  expect(await as(TENANT, ['label', 'pvc', 'foreign-disk', 'berth.dev/retained-from=foreign'])).toBe('done');
  expect(await changeDisk(CONTROLLER, 'foreign-disk', metadata)).toBe('done');
});
