import { expect, test } from 'vitest';
import { findCondition } from '../../../src/kube/conditions.ts';
import type { NetworkPolicy } from '../../../src/kube/network-policy.ts';
import { INDEXES } from '../../../src/caches/indexes.ts';
import { instanceSources } from '../../../src/controllers/gpu-instance/sources.ts';
import { decisionOf } from '../../../src/http/features/instances/claim-waiter.ts';
import { refusal } from '../../../src/http/features/instances/refusal.ts';
import { cacheOf, controllerWorld, held } from '../../support/controller-world.ts';
import { gpuInstance } from '../../support/inventory-world.ts';

const PUBLIC = {
  ipBlock: { cidr: '0.0.0.0/0', except: ['10.0.0.0/8', '100.64.0.0/10', '168.63.129.16/32', '169.254.0.0/16'] },
};
const CLOSED = { podSelector: {}, policyTypes: ['Ingress', 'Egress'], egress: [{ to: [PUBLIC] }] };

function policy(name: string, spec: NetworkPolicy['spec'], namespace = 'default'): NetworkPolicy {
  return { metadata: { name, namespace, resourceVersion: '1' }, ...(spec && { spec }) };
}

/** A world in which namespaces must be closed. */
function world(...policies: NetworkPolicy[]) {
  const made = controllerWorld();
  const cache = cacheOf(policies, INDEXES.networkPolicies);
  Object.assign(made.deps, { networkPolicies: cache.store });
  made.instances.upsert(held(gpuInstance('one', { onNoCapacity: 'Fail' })));
  const get = () => made.instances.store.get('default/one') ?? expect.unreachable();
  return { ...made, cache, get, ready: () => findCondition(get().status?.conditions, 'Ready') };
}

test.each<[string, NetworkPolicy[], string]>([
  [
    'no policy',
    [],
    'No NetworkPolicy of the type Ingress and Egress closes the pods of instances in namespace default.',
  ],
  ['one elsewhere', [policy('a', CLOSED, 'other')], 'No NetworkPolicy of the type Ingress and Egress'],
  [
    'ingress alone',
    [policy('a', { podSelector: {}, policyTypes: ['Ingress'] })],
    'No NetworkPolicy of the type Egress',
  ],
  ['everything let out', [policy('a', { ...CLOSED, egress: [{}] })], 'lets instances connect to every address.'],
  [
    'everything let out by another',
    [policy('a', CLOSED), policy('b', { ...CLOSED, egress: [{ to: [{ ipBlock: { cidr: '0.0.0.0/0' } }] }] })],
    'NetworkPolicy b of namespace default lets instances connect to the metadata service (169.254.169.254',
  ],
  [
    'tenants let in',
    [policy('a', { ...CLOSED, ingress: [{ from: [{ namespaceSelector: {} }] }] })],
    'lets pods of other tenants connect to instances.',
  ],
])('where a closed namespace is required, an instance waits with %s', async (_what, policies, words) => {
  const { reconcile, ready, line, get } = world(...policies);
  await reconcile('one');
  expect(ready()).toMatchObject({ reason: 'NetworkOpen', message: expect.stringContaining(words) });
  expect(get().status?.claim).toBeUndefined();
  expect(line.size).toBe(0);
  expect(decisionOf(get())).toBe('refused');
  expect(refusal(get(), [], 'debian:12')).toMatchObject({ code: 'quota_exceeded' });
});

test('it starts when the namespace is closed, and nobody asks where that is not required', async () => {
  const { deps, reconcile, ready, cache, get } = world();
  const woken: string[] = [];
  const stops = instanceSources(deps).map((source) => source.start((key) => woken.push(key)));
  await reconcile('one');
  expect(ready()?.reason).toBe('NetworkOpen');
  woken.length = 0;
  cache.upsert(policy('a', CLOSED));
  expect(woken).toEqual(['default/one']);
  await reconcile('one');
  expect(get().status?.claim).toBeDefined();
  for (const stop of stops) stop();

  const open = controllerWorld();
  open.instances.upsert(held(gpuInstance('one')));
  await open.reconcile('one');
  expect(open.instances.store.get('default/one')?.status?.claim).toBeDefined();
});
