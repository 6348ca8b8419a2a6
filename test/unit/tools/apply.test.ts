import { expect, it, test } from 'vitest';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { toKubeError } from '../../../src/kube/errors.ts';
import type { KubeObject, ResourceType } from '../../../src/kube/types.ts';
import { API_KEYS, type ApiKey } from '../../../src/resources/api-key.ts';
import type { GpuPool } from '../../../src/resources/gpu-pool.ts';
import { applyCounted, applyFinalizers, applyFleet } from '../../../tools/cluster/apply.ts';

function refusal(status: number, reason: string, message: string): Error {
  return toKubeError('POST /probe', { status, body: { kind: 'Status', status: 'Failure', reason, message } });
}

/** A client of a cluster that takes everything, and answers the dry runs so, one after the other. */
function clientOf(answers: (object | Error)[]): { client: KubeClient; left: () => number } {
  const kinds = ['MutatingAdmissionPolicy', 'MutatingAdmissionPolicyBinding'];
  const resources = kinds.map((kind) => ({ kind, name: kind.toLowerCase(), namespaced: false }));
  const client: Partial<KubeClient> = {
    raw: async <T>(method: string) => {
      if (method === 'GET') return { resources } as T;
      const answer = answers.shift();
      if (answer instanceof Error) throw answer;
      return answer as T;
    },
    apply: async <T extends KubeObject>(_type: ResourceType<T>, object: unknown) => object as T,
  };
  return { client: client as KubeClient, left: () => answers.length };
}

const GIVEN = { metadata: { finalizers: ['berth.dev/instance'] } };
const UNCOUNTED = 'gpuinstances.berth.dev "probe-x" is forbidden: status unknown for quota: berth, resources: count/x';

it('the finalizer is waited for while the policy, or the quota of the namespace, is not in force yet', async () => {
  const early = refusal(503, 'ServiceUnavailable', 'the policy has no schema yet');
  const { client, left } = clientOf([early, refusal(403, 'Forbidden', UNCOUNTED), { metadata: {} }, GIVEN]);
  await applyFinalizers(client, new AbortController().signal);
  expect(left()).toBe(0);
});

it('an object is made as soon as its quota is counted, and another refusal is told at once', async () => {
  const key = { metadata: { name: 'k', namespace: 'default' } } as ApiKey;
  const signal = new AbortController().signal;
  const answers: (Error | undefined)[] = [refusal(403, 'Forbidden', UNCOUNTED), undefined];
  const apply = async <T extends KubeObject>(_type: ResourceType<T>, object: unknown) => {
    const answer = answers.shift();
    if (answer !== undefined) throw answer;
    return object as T;
  };
  const client = { apply } as Pick<KubeClient, 'apply'>;
  expect(await applyCounted(client, API_KEYS, { object: key, signal })).toBe(key);
  answers.push(refusal(403, 'Forbidden', 'you may not do this'));
  await expect(applyCounted(client, API_KEYS, { object: key, signal })).rejects.toThrow('you may not do this');
});

it('another refusal is told at once', async () => {
  const { client } = clientOf([refusal(403, 'Forbidden', 'you may not do this'), GIVEN]);
  await expect(applyFinalizers(client, new AbortController().signal)).rejects.toThrow('you may not do this');
});

/** What the local cluster gets, of the kinds that its manifests have. */
async function fleetOf(kind: boolean, dra = false): Promise<KubeObject[]> {
  const kinds = ['StorageClass', 'GPUPool', 'Namespace', 'DeviceClass'];
  const applied: KubeObject[] = [];
  const client: Partial<KubeClient> = {
    raw: async <T>() => ({ resources: kinds.map((name) => ({ kind: name, name: name.toLowerCase() })) }) as T,
    create: async <T extends KubeObject>(_type: ResourceType<T>, object: T) => object,
    apply: async <T extends KubeObject>(_type: ResourceType<T>, object: unknown) => {
      applied.push(object as KubeObject);
      return object as T;
    },
  };
  await applyFleet(client as KubeClient, {
    kind,
    otherMakers: false,
    dra,
    signal: new AbortController().signal,
  });
  return applied;
}

// The host-path provisioner of the control plane makes folders where it runs: on kind in a container, whose /tmp is memory.
test('on kind the disks are those of its own class, and else of the class that the local cluster brings', async () => {
  const classesOf = (objects: KubeObject[]) =>
    objects.filter((object) => object.kind === 'StorageClass').map(({ metadata }) => metadata.name);
  const [onKind, built] = [await fleetOf(true), await fleetOf(false)];
  expect([classesOf(onKind), classesOf(built)]).toEqual([[], ['berth-local']]);
  const [pool] = onKind.filter((object) => object.kind === 'GPUPool') as GpuPool[];
  expect(pool?.spec.disk).toEqual({ maxGb: 1024 });
});

test('a DRA driver gets classes of its own, of GPUs and partitions, and a pool that sells them', async () => {
  const added = (await fleetOf(false, true)).slice((await fleetOf(false)).length);
  expect(added.map(({ kind, metadata }) => [kind, metadata.name])).toEqual([
    ['DeviceClass', 'gpu.berth.dev'],
    ['DeviceClass', 'mig-1g-3gb.gpu.berth.dev'],
    ['DeviceClass', 'mig-2g-6gb.gpu.berth.dev'],
    ['GPUPool', 'dra'],
  ]);
});
