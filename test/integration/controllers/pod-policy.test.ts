import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { ensurePriorityClasses } from '../../../src/controllers/priority-classes.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { tolerationsOf } from '../../../src/inventory/nodes/node-state.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { NAMESPACES, type Pod } from '../../../src/kube/types.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { CONSTRAINTS, filled } from '../../../tools/release/openshift.ts';
import { holdPolicies, kubectlAs } from '../../support/chart-policies.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';
import { podOf } from '../../support/pod-of.ts';
import { waitFor } from '../../support/wait-for.ts';

// The admission policies of the chart about what the controller's account writes to pods, and about the Secrets of roles,
// in one namespace.

const NAMES = ['berth-pods', 'berth-pod-annotations', 'berth-secrets'];
const CONTROLLER = 'system:serviceaccount:berth-system:berth-controller';
const API = 'system:serviceaccount:berth-system:berth-api';
const PLAIN = 'an instance names no node, scheduler, ResourceClaim, probe, hook';
const ANNOTATION = "Berth's controller writes the annotation berth.dev/claim of pods, and no other: ";
/** RuntimeClasses: one that the chart names by default, and one that it does not. */
const [NAMED, UNNAMED] = ['kata-pods', 'pods-other'];
const CLASSES = '/apis/node.k8s.io/v1/runtimeclasses';
const namespace = `pods-${Math.random().toString(36).slice(2, 8)}`;

let client: KubeClient;
let policies: AsyncDisposable;

async function as(user: string, command: readonly string[], input?: object): Promise<string> {
  const read = input === undefined ? [] : ['-f', '-'];
  return kubectlAs({ namespace, user }, [...command, ...read], input);
}

/** A pod as the controller makes it, with what is other about it. */
function pod(spec: object = {}, { main = {}, annotations = {} }: { main?: object; annotations?: object } = {}): object {
  const instance = gpuInstance('one', { image: 'debian:12' }, { incarnation: 1 });
  const owned = { ...instance, metadata: { ...instance.metadata, namespace } };
  const requests = { pods: 1, 'nvidia.com/gpu': 1 };
  const tolerations = tolerationsOf({ tolerations: [{ key: 'team', operator: 'Equal', value: 'a' }] });
  const made = podOf(owned, { claim: claimOn('none'), claimed: instance.status, requests, tolerations });
  const [first, ...others] = made.spec?.containers ?? [];
  const metadata = { ...made.metadata, annotations: { ...made.metadata.annotations, ...annotations } };
  const containers = [{ ...first, ...main }, ...others];
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { ...made.spec, containers, ...spec } };
}

const create = (body: object, user = CONTROLLER): Promise<string> => as(user, ['create', '--dry-run=server'], body);

beforeAll(async () => {
  client = createKubeClient(await loadKubeConfig({ kubeconfig: inject('cluster').kubeconfig }), {
    clock: systemClock(),
  });
  await ensurePriorityClasses(client, new AbortController().signal);
  await client.create(NAMESPACES, { metadata: { name: namespace } });
  await client.raw('POST', `/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name: 'default' } }).catch(
    // Kubernetes makes it too.
    () => undefined,
  );
  for (const name of [NAMED, UNNAMED]) await client.raw('POST', CLASSES, { metadata: { name }, handler: 'any' });
  policies = await holdPolicies(client, NAMES, namespace);
  await waitFor('the policies to be in force', async () => {
    const plain = await create(pod({ nodeName: 'any' }));
    const annotated = await create(pod({}, { annotations: { any: '' } }));
    const secret = await create({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'any' } }, API);
    return plain.includes(PLAIN) && annotated.includes(ANNOTATION) && secret.includes('makes the Secret');
  });
});

afterAll(async () => {
  await policies[Symbol.asyncDispose]();
  for (const name of [NAMED, UNNAMED]) await client.raw('DELETE', `${CLASSES}/${name}`);
  await client.delete(NAMESPACES, { name: namespace });
  await client.close();
});

const KUBELET_CALL = { httpGet: { host: '169.254.169.254', port: 80 } };

test('the controller makes the pods of instances', async () => {
  expect(await create(pod())).toBe('done');
  expect(await create(pod({ securityContext: { seLinuxOptions: { level: 's0:c1,c2' } } }))).toBe('done');
  expect(await create(pod({}, { annotations: { 'kubernetes.io/limit-ranger': 'set' } }))).toBe('done');
  expect(await create(pod({ runtimeClassName: NAMED }))).toBe('done');
  expect(await create(pod({}, { main: limits({ 'nvidia.com/mig-1g.10gb': '1' }) }))).toBe('done');
});

test.each(Object.entries(CONSTRAINTS))('and as OpenShift fills them in under %s', async (_name, constraints) => {
  expect(await create(filled(pod() as Pod, constraints))).toBe('done');
});

test.each<[string, object, object?]>([
  ['on a node of its choice', { nodeName: 'any' }],
  ['by another scheduler', { schedulerName: 'another' }],
  ['with a device of DRA', { resourceClaims: [{ name: 'any', resourceClaimName: 'any' }] }],
  ['with an SELinux type', { securityContext: { seLinuxOptions: { type: 'spc_t' } } }],
  ['without AppArmor', { securityContext: { appArmorProfile: { type: 'Unconfined' } } }],
  ['without seccomp', { securityContext: { seccompProfile: { type: 'Unconfined' } } }],
  ['with a probe', {}, { livenessProbe: KUBELET_CALL }],
  ['with another probe', {}, { startupProbe: KUBELET_CALL }],
  ['with a hook', {}, { lifecycle: { postStart: KUBELET_CALL } }],
])('and none %s', async (_what, spec, main) => {
  expect(await create(pod(spec, { ...(main && { main }) }))).toContain(PLAIN);
});

const TAINTS = 'an instance tolerates the taints of its pool, each by its name';
const DEVICES = 'an instance asks for GPUs, and for no other device';
const limits = (amounts: object): object => ({ resources: { limits: amounts } });
/** The init containers of a pod, with a device that is no GPU. */
const withDevice = (): object[] =>
  ((pod() as Pod).spec?.initContainers ?? []).map((one) => ({ ...one, ...limits({ 'example.com/fuse': '1' }) }));

test.each<[string, string, object, object?]>([
  ['that tolerates every taint', TAINTS, { tolerations: [{ operator: 'Exists' }] }],
  ['that stays on a node that is silent', TAINTS, { tolerations: [{ key: 'node.kubernetes.io/unreachable' }] }],
  ['that starts on a cordoned node', TAINTS, { tolerations: [{ key: 'node.kubernetes.io/unschedulable' }] }],
  ['without a GPU, which could be on any node', DEVICES, {}, limits({})],
  ['with another device', DEVICES, {}, limits({ 'nvidia.com/gpu': '1', 'devices.kubevirt.io/kvm': '1' })],
  ['with another device before its start', DEVICES, { initContainers: withDevice() }],
  [
    'under a RuntimeClass that nobody named',
    `instances have no RuntimeClass ${UNNAMED}`,
    { runtimeClassName: UNNAMED },
  ],
])('and none %s', async (_what, refusal, spec, main) => {
  expect(await create(pod(spec, { ...(main && { main }) }))).toContain(refusal);
});

test.each(['k8s.v1.cni.cncf.io/networks', 'io.katacontainers.config.hypervisor.path', 'cdi.k8s.io/attack'])(
  'and none with the annotation %s',
  async (name) => {
    expect(await create(pod({}, { annotations: { [name]: 'unconfined' } }))).toContain(`${ANNOTATION}${name}`);
  },
);

// The API server makes it a field of the pod as well, and says what one of the two policies says.
test('and none with the annotation of AppArmor', async () => {
  const name = 'container.apparmor.security.beta.kubernetes.io/main';
  const said = await create(pod({}, { annotations: { [name]: 'unconfined' } }));
  expect([PLAIN, `${ANNOTATION}${name}`].filter((refusal) => said.includes(refusal))).toHaveLength(1);
});

test('the controller changes a pod to which somebody else wrote an annotation, and adds none itself', async () => {
  expect(await as('operator', ['create'], pod({}, { annotations: { theirs: 'a' } }))).toBe('done');
  const change = (metadata: object): Promise<string> =>
    as(CONTROLLER, ['patch', 'pod', 'one-1', '--type=merge', '-p', JSON.stringify({ metadata })]);
  expect(await change({ labels: { a: 'b' } })).toBe('done');
  expect(await change({ annotations: { 'berth.dev/claim': null } })).toBe('done');
  expect(await change({ annotations: { 'k8s.v1.cni.cncf.io/networks': 'x' } })).toContain(ANNOTATION);
  expect(await change({ annotations: { theirs: 'b' } })).toContain(`${ANNOTATION}theirs`);
  expect(await as('operator', ['delete', 'pod', 'one-1', '--wait=false'])).toBe('done');
});

test('the api role makes the Secrets of RegistryCredentials, and what only looks like one it does not', async () => {
  const owner = { apiVersion: 'berth.dev/v1alpha1', kind: 'RegistryCredential', name: 'r-1', uid: 'any' };
  const labels = { 'berth.dev/registry': 'r-1' };
  const secret = (metadata: object): object => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'r-1', namespace, labels, ownerReferences: [owner], ...metadata },
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': Buffer.from('{"auths":{}}').toString('base64') },
  });
  expect(await create(secret({}), API)).toBe('done');
  for (const metadata of [
    { ownerReferences: [{ ...owner, apiVersion: 'v1' }] },
    { ownerReferences: [{ ...owner, name: 'r-2' }] },
    { labels: {} },
    { labels: { 'berth.dev/registry': 'r-2' } },
  ]) {
    expect(await create(secret(metadata), API)).toContain('makes the Secret');
  }
});
