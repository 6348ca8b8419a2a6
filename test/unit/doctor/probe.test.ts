import { expect, test } from 'vitest';
import {
  closingPolicy,
  missingPod,
  type ProbeDeps,
  probeNetwork,
  reachingPod,
  serverPod,
  withProbe,
} from '../../../src/doctor/probe.ts';
import { selects } from '../../../src/kube/selector.ts';
import { ForbiddenError, NotFoundError } from '../../../src/kube/errors.ts';
import type { KubeObject, ObjectRef, Pod, ResourceType } from '../../../src/kube/types.ts';
import { dockerConfig } from '../../../src/resources/registry-credential.ts';
import { objects, reportOf } from '../../support/sound-installation.ts';

const IMAGE = { image: 'berth:1' };
const NAMESPACE = 'berth-doctor-1';
const FORBIDDEN = { message: 'POST /pods: 403', status: 403, reason: 'Forbidden' };

/** What becomes of each pod, by its name: each time that it is read, and the last from then on. */
type Phases = Readonly<Record<string, string | readonly string[]>>;

interface Given {
  refusals?: (Error | undefined)[];
  /** What each Secret of Berth's own namespace has for which registry. */
  secrets?: Readonly<Record<string, object>>;
}

/** A cluster that has the pods of the probe end as the test says. Time passes at each sleep. */
function clusterOf(phases: Phases, { refusals = [], secrets = {} }: Given = {}) {
  const calls: string[] = [];
  const created: KubeObject[] = [];
  const reads = new Map<string, number>();
  let elapsed = 0;
  const phaseOf = (name: string): string | undefined => {
    const at = reads.get(name) ?? 0;
    reads.set(name, at + 1);
    const all = [phases[name] ?? []].flat();
    return all[at] ?? all.at(-1);
  };
  const create = ({ kind }: ResourceType, object: KubeObject): Promise<void> => {
    const { metadata } = object;
    created.push(object);
    calls.push(`create ${kind} ${metadata.name}`);
    const refusal = kind === 'Pod' ? refusals.shift() : undefined;
    return refusal === undefined ? Promise.resolve() : Promise.reject(refusal);
  };
  const get = ({ kind }: ResourceType, { name, namespace }: ObjectRef): Promise<KubeObject> => {
    const phase = phaseOf(name);
    const held = kind === 'Secret' && namespace === 'berth-system' ? secrets[name] : undefined;
    if (held !== undefined) return Promise.resolve({ metadata: { name }, ...dockerConfig(held) });
    if (phase === 'gone' || kind === 'Secret') return Promise.reject(new NotFoundError({ ...FORBIDDEN, status: 404 }));
    return Promise.resolve({ metadata: { name }, status: { phase, podIP: '10.0.0.1' } } as KubeObject);
  };
  const remove = ({ kind }: ResourceType, { name }: ObjectRef): Promise<void> => {
    calls.push(`delete ${kind} ${name}`);
    return Promise.resolve();
  };
  const sleep = (ms: number): Promise<void> => {
    elapsed += ms;
    return Promise.resolve();
  };
  const deps = {
    client: { create, get, delete: remove },
    clock: { monotonic: () => elapsed, sleep },
    namespace: NAMESPACE,
    image: IMAGE,
    pull: { namespace: 'berth-system', names: Object.keys(secrets) },
  } as unknown as ProbeDeps;
  return { deps, calls, created };
}

const RUNS = { server: 'Running', reaches: 'Succeeded', misses: 'Succeeded' };

test('a pod that was reached before the policy and not after it is closed', async () => {
  const { deps, calls } = clusterOf(RUNS);
  expect(await probeNetwork(deps)).toEqual({ result: 'closed' });
  expect(calls).toEqual([
    `create Namespace ${NAMESPACE}`,
    'create Pod server',
    'create Pod reaches',
    'create NetworkPolicy closed',
    'create Pod misses',
    `delete Namespace ${NAMESPACE}`,
  ]);
});

test.each<[what: string, phases: Phases, result: string]>([
  ['that is still reached', { ...RUNS, misses: 'Failed' }, 'open'],
  ['that was never reached', { ...RUNS, reaches: 'Failed' }, 'unknown'],
  ['that does not start', { ...RUNS, server: 'Pending' }, 'unknown'],
  ['that fails', { ...RUNS, server: 'Failed' }, 'unknown'],
  ['that another program deletes', { ...RUNS, server: 'gone' }, 'unknown'],
  ['whose client does not end', { ...RUNS, misses: 'Running' }, 'unknown'],
  ['that has ended when it is not reached', { ...RUNS, server: ['Running', 'Failed'] }, 'unknown'],
  ['that is gone when it is not reached', { ...RUNS, server: ['Running', 'gone'] }, 'unknown'],
])('a pod %s: %s', async (_what, phases, result) => {
  const { deps, calls } = clusterOf(phases);
  expect(await probeNetwork(deps)).toMatchObject({ result });
  expect(calls.at(-1)).toBe(`delete Namespace ${NAMESPACE}`);
});

test('pods pull their image with the credentials that Berth has for it, and with no other', async () => {
  const auths = { 'corp:5000/x': { auth: 'own' }, 'other.corp': { auth: 'other' } };
  const { deps, calls, created } = clusterOf(RUNS, { secrets: { mirror: auths, gone: {} } });
  expect(await probeNetwork({ ...deps, image: { image: 'corp:5000/x/berth:1' } })).toEqual({ result: 'closed' });
  expect(calls.slice(0, 2)).toEqual([`create Namespace ${NAMESPACE}`, 'create Secret berth.image-pull']);
  expect(created[1]).toEqual({
    metadata: {
      name: 'berth.image-pull',
      namespace: NAMESPACE,
      labels: { 'app.kubernetes.io/managed-by': 'berth-doctor' },
    },
    ...dockerConfig({ 'corp:5000/x/berth': { auth: 'own' } }),
  });
  const pods = created.filter((object) => 'spec' in object && 'containers' in (object.spec as object)) as Pod[];
  expect(pods).toHaveLength(3);
  for (const { spec } of pods) expect(spec?.imagePullSecrets).toEqual([{ name: 'berth.image-pull' }]);
});

test('where no credentials are for the image, pods name none', async () => {
  const { deps, created } = clusterOf(RUNS, { secrets: { mirror: { 'other.corp': { auth: 'other' } } } });
  expect(await probeNetwork(deps)).toEqual({ result: 'closed' });
  expect(JSON.stringify(created)).not.toMatch(/image-?pull(Secrets)?"/i);
});

test('waits for the service account of the new namespace, and gives up on any other refusal', async () => {
  const early = new ForbiddenError({
    ...FORBIDDEN,
    statusMessage: 'error looking up service account: serviceaccount "default" not found',
  });
  expect(await probeNetwork(clusterOf(RUNS, { refusals: [early, early] }).deps)).toEqual({ result: 'closed' });
  const refused = clusterOf(RUNS, { refusals: [new ForbiddenError(FORBIDDEN)] });
  await expect(probeNetwork(refused.deps)).rejects.toThrow('403');
  expect(refused.calls.at(-1)).toBe(`delete Namespace ${NAMESPACE}`);
});

test('the policy closes the server alone', () => {
  const clients = [reachingPod, missingPod].map((make) => make(NAMESPACE, '10.0.0.1', IMAGE));
  const pods = [serverPod(NAMESPACE, IMAGE), ...clients];
  const policy = closingPolicy(NAMESPACE);
  expect(pods.map(({ metadata }) => selects(policy.spec?.podSelector, metadata.labels))).toEqual([true, false, false]);
  expect(policy.spec?.ingress).toBeUndefined();
});

test('an outcome of the probe takes the place of what was not known', () => {
  const unknown = reportOf(objects(() => ({ daemonSets: [] })));
  const reasons = (report: typeof unknown) =>
    report.checks.flatMap(({ findings }) => findings.map(({ reason }) => reason));
  expect(reasons(unknown)).toEqual(['EnforcementNotKnown']);
  expect(reasons(withProbe(unknown, { result: 'closed' }))).toEqual([]);
  expect(reasons(withProbe(unknown, { result: 'open' }))).toEqual(['NotEnforced']);
  expect(reasons(withProbe(unknown, { result: 'unknown', why: 'no' }))).toEqual(['EnforcementNotKnown', 'ProbeFailed']);
});
