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
import type { KubeObject, ObjectRef, ResourceType } from '../../../src/kube/types.ts';
import { objects, reportOf } from '../../support/sound-installation.ts';

const IMAGE = { image: 'berth:1' };
const NAMESPACE = 'berth-doctor-1';
const FORBIDDEN = { message: 'POST /pods: 403', status: 403, reason: 'Forbidden' };

/** What becomes of each pod, by its name. */
type Phases = Readonly<Record<string, string>>;

/** A cluster that has the pods of the probe end as the test says. Time passes at each sleep. */
function clusterOf(phases: Phases, { refusals = [] }: { refusals?: (Error | undefined)[] } = {}) {
  const calls: string[] = [];
  let elapsed = 0;
  const create = ({ kind }: ResourceType, { metadata }: KubeObject): Promise<void> => {
    calls.push(`create ${kind} ${metadata.name}`);
    const refusal = kind === 'Pod' ? refusals.shift() : undefined;
    return refusal === undefined ? Promise.resolve() : Promise.reject(refusal);
  };
  const get = (_type: ResourceType, { name }: ObjectRef): Promise<KubeObject> => {
    const phase = phases[name];
    if (phase === 'gone') return Promise.reject(new NotFoundError({ ...FORBIDDEN, status: 404 }));
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
  } as unknown as ProbeDeps;
  return { deps, calls };
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
])('a pod %s: %s', async (_what, phases, result) => {
  const { deps, calls } = clusterOf(phases);
  expect(await probeNetwork(deps)).toMatchObject({ result });
  expect(calls.at(-1)).toBe(`delete Namespace ${NAMESPACE}`);
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
