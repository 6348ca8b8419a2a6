import { expect, test } from 'vitest';
import type { Pod } from '../../../src/kube/types.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { instanceState } from '../../../src/resources/instances/instance-state.ts';
import { withClaimOf } from '../../../src/resources/pod/claim-on-pod.ts';
import { prunePod } from '../../../src/caches/prune.ts';
import { claimedPod, claimOn, gpuInstance } from '../../support/inventory-world.ts';

const NEW = gpuInstance('one');
const CLAIM = claimOn('n', { gpuCount: 2 });
const POD = claimedPod(NEW, CLAIM);
const [MAIN = { name: 'main' }] = POD.spec?.containers ?? [];
const TEXT = POD.metadata.annotations?.['berth.dev/claim'] ?? '';
const [OWNER] = POD.metadata.ownerReferences ?? [];

function annotated(text: string): Pod {
  return { ...POD, metadata: { ...POD.metadata, annotations: { 'berth.dev/claim': text } } };
}

function named(over: Partial<Pod['metadata']>): Pod {
  return { ...POD, metadata: { ...POD.metadata, ...over } };
}

function requesting(...gpus: string[]): Pod {
  const containers = gpus.map((count) => ({ ...MAIN, resources: { requests: { 'nvidia.com/gpu': count } } }));
  return { ...POD, spec: { ...POD.spec, containers } };
}

function on(...terms: object[]): Pod {
  const required = { nodeSelectorTerms: terms };
  const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } };
  return { ...POD, spec: { ...POD.spec, containers: [MAIN], affinity } };
}

function field(values: string[], operator = 'In') {
  return { matchFields: [{ key: 'metadata.name', operator, values }] };
}

test('an instance has the claim that its pod bears, and is being scheduled', () => {
  const { status } = withClaimOf(NEW, POD);
  expect(status).toMatchObject({ claim: CLAIM, incarnation: 1, podName: 'one-1', image: 'debian:12', diskGb: 10 });
  expect(status?.stages).toEqual({ accepted: '2026-01-01T00:00:00.000Z', claimed: CLAIM.grantedAt });
  expect(instanceState(withClaimOf(NEW, POD))).toMatchObject({ state: 'scheduling' });
});

test('the watch cache keeps what says so, and of other pods nothing', () => {
  expect(withClaimOf(NEW, prunePod(POD)).status?.claim).toEqual(CLAIM);
  const other = prunePod(named({ annotations: { a: 'b' } }));
  expect([other.metadata.annotations, other.spec?.affinity]).toEqual([undefined, undefined]);
});

test('what was said while it waited for the place is past', () => {
  const at = '2026-01-01T00:00:00Z';
  const said = (type: string) => ({
    type,
    status: 'False' as const,
    reason: 'WaitingForCapacity',
    message: '',
    lastTransitionTime: at,
  });
  const waited = gpuInstance('one', {}, { conditions: [said('Ready'), said('Claimed'), said('SSHKeys')] });
  const claimed = withClaimOf(waited, POD);
  expect(claimed.status?.conditions?.map(({ type }) => type)).toEqual(['SSHKeys']);
  expect(instanceState(claimed).state).toBe('scheduling');
});

// Whatever is otherwise than the controller makes it is no claim: a tenant who may make pods must not get GPUs so.
test.each<[string, Pod | undefined]>([
  ['there is none', undefined],
  ['it is the pod of a later start', named({ name: 'one-2' })],
  ['it is in another namespace', named({ namespace: 'other' })],
  ['it has no owner', named({ ownerReferences: [] })],
  ['its owner is another instance', claimedPod(gpuInstance('other'), CLAIM)],
  [
    'its owner is an earlier instance of this name',
    named({ ownerReferences: OWNER ? [{ ...OWNER, uid: 'uid-0' }] : [] }),
  ],
  ['its owner does not control it', named({ ownerReferences: OWNER ? [{ ...OWNER, controller: false }] : [] })],
  [
    'only its label names the instance',
    named({ ownerReferences: [], labels: { 'berth.dev/instance-uid': 'uid-one' } }),
  ],
  ['it has no annotation', named({ annotations: {} })],
  ['the annotation is no JSON', annotated('{')],
  ['the annotation lacks the price', annotated(TEXT.replace('"pricePerHour"', '"price"'))],
  ['the annotation is too long', annotated(`${TEXT}${' '.repeat(5_000)}`)],
  ['it requests fewer GPUs', requesting('1')],
  ['its containers request more GPUs together', requesting('2', '1')],
  ['it requests another resource', annotated(TEXT.replace('nvidia.com/gpu', 'nvidia.com/mig-1g.10gb'))],
  ['it may run on any node', { ...POD, spec: { containers: [MAIN] } }],
  ['it must run on another node', on(field(['m']))],
  ['it may run on other nodes too', on(field(['n', 'm']))],
  ['another of its terms allows any node', on(field(['n']), { matchExpressions: [] })],
  ['it must not run on that node', on(field(['n'], 'NotIn'))],
  ['it runs on another node', { ...POD, spec: { ...POD.spec, containers: [MAIN], nodeName: 'm' } }],
])('a pod bears no claim when %s', (_why, pod) => {
  expect(withClaimOf(NEW, pod)).toBe(NEW);
});

test.each<[string, GpuInstance['status']]>([
  ['has a claim', { claim: claimOn('m'), incarnation: 1 }],
  ['had a start', { incarnation: 1 }],
  ['has an ending', { ending: { reason: 'NoCapacity', message: '', at: '2026-01-01T00:00:00Z' } }],
])('the claim on the pod is past when the status %s', (_what, status) => {
  const instance = gpuInstance('one', {}, status);
  expect(withClaimOf(instance, POD)).toBe(instance);
});
