import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { NAMESPACES, PODS } from '../../../src/kube/types.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { CLAIM_ANNOTATION } from '../../../src/resources/pod/claim-on-pod.ts';
import { ROOT } from '../../../tools/lib/paths.ts';
import { run } from '../../../tools/lib/shell.ts';
import { waitFor } from '../../support/wait-for.ts';

// The admission policy of the chart about claims on pods, in one namespace: other tests have pods with claims of theirs.

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const NAME = 'berth-claims';
const CONTROLLER = 'system:serviceaccount:berth-system:berth-controller';
const TENANT = 'alice';
const REFUSED = "only Berth's controller writes the annotation berth.dev/claim";
const namespace = `claims-${Math.random().toString(36).slice(2, 8)}`;
const [policy, binding] = parseAllDocuments(readFileSync(join(ROOT, 'deploy/base/admission.yaml'), 'utf8'))
  .map((one) => one.toJS() as { kind: string; metadata: { name: string }; spec: object })
  .filter(({ metadata }) => metadata.name === NAME);

let client: KubeClient;

/** What the API server says to a user with the rights of an administrator. */
async function as(user: string, command: readonly string[], input: object = {}): Promise<string> {
  const { programs, kubeconfig } = inject('cluster');
  const program = programs === undefined ? 'kubectl' : join(programs, 'kubectl');
  const who = ['--kubeconfig', kubeconfig, '-n', namespace, '--as', user, '--as-group', 'system:masters'];
  const { code, stderr } = await run(program, [...who, ...command], { input: JSON.stringify(input) });
  return code === 0 ? 'done' : stderr;
}

function pod(name: string, claim?: string): object {
  const annotations = claim === undefined ? {} : { annotations: { [CLAIM_ANNOTATION]: claim } };
  const spec = { containers: [{ name: 'main', image: 'any' }], nodeSelector: { none: 'none' } };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace, ...annotations }, spec };
}

function make(user: string, name: string, claim?: string): Promise<string> {
  return as(user, ['create', '-f', '-'], pod(name, claim));
}

function change(user: string, name: string, metadata: object, ...how: string[]): Promise<string> {
  return as(user, ['patch', 'pod', name, '--type=merge', '-p', JSON.stringify({ metadata }), ...how]);
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
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': namespace } };
  await client.raw('POST', `${ADMISSION}/validatingadmissionpolicies`, policy);
  await client.raw('POST', `${ADMISSION}/validatingadmissionpolicybindings`, {
    ...binding,
    spec: { ...binding?.spec, matchResources: { namespaceSelector } },
  });
  await waitFor('the policy to be in force', async () => (await make(TENANT, 'probe', '{}')).includes(REFUSED));
  expect(await make(TENANT, 'bare')).toBe('done');
  expect(await make(CONTROLLER, 'claimed', '{}')).toBe('done');
});

afterAll(async () => {
  await client.raw('DELETE', `${ADMISSION}/validatingadmissionpolicybindings/${NAME}`);
  await client.raw('DELETE', `${ADMISSION}/validatingadmissionpolicies/${NAME}`);
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
