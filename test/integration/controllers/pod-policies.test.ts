import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { ensurePriorityClasses } from '../../../src/controllers/priority-classes.ts';
import { PODS } from '../../../src/kube/types.ts';
import { POD_FINALIZER } from '../../../src/resources/pod/pod-finalizer.ts';
import { run } from '../../../tools/lib/shell.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { holdPolicies } from '../../support/chart-policies.ts';
import { waitFor } from '../../support/wait-for.ts';

// The admission policies of the chart about the ends of pods, in one namespace: other tests end pods of their own.

const CONTROLLER = 'system:serviceaccount:berth-system:berth-controller';
const TENANT = 'alice';
const BY_FORCE = 'delete the pod without --force and --grace-period=0';
const KEPT = "only Berth's controller takes the finalizer berth.dev/pod off";
let space: TestNamespace;
let policies: AsyncDisposable;

/** What the API server says to a user: `done`, or why not. */
async function as(user: readonly string[], command: readonly string[]): Promise<string> {
  const { programs, kubeconfig } = inject('cluster');
  const program = programs === undefined ? 'kubectl' : join(programs, 'kubectl');
  const who = user.flatMap((one, index) => [index === 0 ? '--as' : '--as-group', one]);
  const { code, stderr } = await run(program, ['--kubeconfig', kubeconfig, '-n', space.name, ...who, ...command]);
  return code === 0 ? 'done' : stderr;
}

/** A pod of an instance that has a node, which is none of this cluster's. */
async function pod(name: string, over: object = { nodeName: 'elsewhere' }): Promise<void> {
  await space.client.create(PODS, {
    metadata: { name, namespace: space.name, finalizers: [POD_FINALIZER] },
    spec: { containers: [{ name: 'main', image: 'any' }], priorityClassName: 'berth-on-demand', ...over },
  });
}

function finalizers(name: string, ...value: string[]): string[] {
  return ['patch', 'pod', name, '--type=merge', '-p', JSON.stringify({ metadata: { finalizers: value } })];
}

const force = (name: string): string[] => ['delete', 'pod', name, '--force', '--grace-period=0', '--wait=false'];

beforeAll(async () => {
  space = await testNamespace();
  const { client, name } = space;
  await ensurePriorityClasses(client, new AbortController().signal);
  // Kubernetes makes it too.
  await client
    .raw('POST', `/api/v1/namespaces/${name}/serviceaccounts`, { metadata: { name: 'default' } })
    .catch(() => undefined);
  const rbac = 'rbac.authorization.k8s.io';
  await client.raw('POST', `/apis/${rbac}/v1/namespaces/${name}/rolebindings`, {
    metadata: { name: 'admins' },
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'admin' },
    subjects: [TENANT, CONTROLLER].map((user) => ({ apiGroup: rbac, kind: 'User', name: user })),
  });
  policies = await holdPolicies(client, ['berth-grace', 'berth-pod-finalizer'], name);
  await pod('probe');
  await waitFor('both policies to be in force', async () => {
    const tries = [force('probe'), finalizers('probe')].map((command) =>
      as([TENANT], [...command, '--dry-run=server']),
    );
    const [forced = '', freed = ''] = await Promise.all(tries);
    return forced.includes(BY_FORCE) && freed.includes(KEPT);
  });
});

afterAll(async () => {
  const { client, name } = space;
  await policies[Symbol.asyncDispose]();
  for (const { metadata } of (await client.list(PODS, { namespace: name })).items)
    await client.patch(PODS, metadata, { metadata: { finalizers: null } }, { type: 'merge' });
  await space[Symbol.asyncDispose]();
});

test('a tenant deletes the pod of an instance, but not by force', async () => {
  await pod('one');
  expect(await as([TENANT], force('one'))).toContain(BY_FORCE);
  expect(await as([TENANT], ['delete', 'pod', 'one', '--now', '--wait=false'])).toBe('done');
  expect(await as([TENANT], force('one'))).toContain(BY_FORCE);
});

test('by force goes a pod without a node, one that has ended, and what is not of an instance', async () => {
  await pod('unbound', { nodeSelector: { none: 'none' } });
  await pod('other', { nodeName: 'elsewhere', priorityClassName: '' });
  await pod('ended');
  const status = { phase: 'Failed' };
  const ref = { namespace: space.name, name: 'ended' };
  await space.client.patch(PODS, ref, { status }, { type: 'merge', subresource: 'status' });
  for (const name of ['unbound', 'other', 'ended'])
    expect([name, await as([TENANT], force(name))]).toEqual([name, 'done']);
});

test.each([
  ['a kubelet', ['system:node:elsewhere', 'system:nodes']],
  ['the garbage collector', ['system:serviceaccount:kube-system:pod-garbage-collector']],
  ['who may drain nodes', ['root', 'system:masters']],
])('%s deletes by force', async (who, user) => {
  const name = who.replaceAll(' ', '-');
  await pod(name);
  expect(await as(user, force(name))).toBe('done');
});

test('nobody but the controller makes a pod with the finalizer', async () => {
  const marked = JSON.stringify({ metadata: { finalizers: [POD_FINALIZER] } });
  const make = (name: string): string[] => ['run', name, '--image=any', '--restart=Never', '--overrides'];
  expect(await as([TENANT], [...make('forged'), marked])).toContain(KEPT);
  // The controllers of Kubernetes make what a tenant's template says.
  const replicaSets = 'system:serviceaccount:kube-system:replicaset-controller';
  const groups = ['system:serviceaccounts', 'system:serviceaccounts:kube-system'];
  expect(await as([replicaSets, ...groups], [...make('forged'), marked])).toContain(KEPT);
  expect(await as([TENANT], [...make('plain'), '{}'])).toBe('done');
  expect(await as([CONTROLLER], [...make('made'), marked])).toBe('done');
});

test('the finalizer is given and taken by the controller alone, and all else of the pod by who may change it', async () => {
  await pod('kept');
  const merge = JSON.stringify({ metadata: { finalizers: null } });
  const byStatus = ['patch', 'pod', 'kept', '--subresource=status', '--type=merge', '-p', merge];
  expect(await as([TENANT], finalizers('kept', 'tenant.example/keep'))).toContain(KEPT);
  expect(await as([TENANT], byStatus)).toContain('is forbidden');
  expect(await as([TENANT], finalizers('kept', POD_FINALIZER, 'tenant.example/keep'))).toBe('done');
  expect(await as([TENANT], ['label', 'pod', 'kept', 'a=b'])).toBe('done');
  expect(await as([CONTROLLER], finalizers('kept', 'tenant.example/keep'))).toBe('done');
  expect(await as([TENANT], finalizers('kept', POD_FINALIZER))).toContain(KEPT);
  expect(await as(['root', 'system:masters'], finalizers('kept'))).toBe('done');
});
