import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { limitReader, readPolicy, resolveCeilings } from '../../../src/controllers/tenants/tenant-ceilings.ts';
import { Cache } from '../../../src/kube/watch/cache.ts';
import type { KubeObject, Namespace } from '../../../src/kube/types.ts';
import {
  allowsImage,
  type Ceilings,
  ceilingsSchema,
  CLOSED_CEILINGS,
  DEFAULT_CEILINGS,
  isForGpus,
  MOST_ENTRIES,
} from '../../../src/resources/tenants/ceilings.ts';
import { tenantLimitSpecSchema } from '../../../src/resources/tenants/tenant-limit.ts';
import { type TenantPolicy, tenantPolicySpecSchema } from '../../../src/resources/tenants/tenant-policy.ts';

function policy(name: string, spec: object): TenantPolicy {
  return { metadata: { name }, spec: tenantPolicySpecSchema.parse(spec) };
}

function broken(name: string, spec: object): TenantPolicy {
  return { metadata: { name }, spec: spec as TenantPolicy['spec'] };
}

const SEGMENT = fc.constantFrom('a', 'b', 'c');
const IMAGE = fc.array(SEGMENT, { minLength: 1, maxLength: 3 }).map((parts) => `r.io/${parts.join('')}`);
const PATTERN = fc.tuple(IMAGE, fc.constantFrom('', '*')).map(([image, end]) => image + end);
const NAME = fc.constantFrom('*', 'x', 'y', 'z');
const FEW = fc.integer({ min: 0, max: 3 });

const CEILINGS: fc.Arbitrary<Ceilings> = fc
  .record({
    gpus: fc.uniqueArray(fc.record({ pool: NAME, product: NAME, max: FEW }), {
      selector: ({ pool, product }) => `${pool} ${product}`,
    }),
    objects: fc.record({ instances: FEW, sshKeys: FEW, templates: FEW, apiKeys: FEW, registries: FEW, webhooks: FEW }),
    images: fc.array(fc.oneof(PATTERN, fc.constant('*')), { maxLength: 4 }),
    runtimeClassNames: fc.subarray(['kata', 'gvisor', 'other']),
    userNamespaces: fc.constantFrom('Optional', 'Required'),
    models: fc.record({ callsPerMinute: fc.option(FEW, { nil: undefined }) }),
    ssh: fc.record({ connections: FEW }),
  })
  .map((fields) => ceilingsSchema.parse(fields));

/** The most GPUs of a place that ceilings allow, for each place that the generator knows. */
function gpusAllowed({ gpus }: Ceilings, pool: string, product: string): number {
  return Math.min(Infinity, ...gpus.filter((ceiling) => isForGpus(ceiling, { pool, product })).map(({ max }) => max));
}

describe('policies that cover a namespace', () => {
  it('without any, the defaults hold', () => {
    expect(resolveCeilings({}, [])).toEqual({ ceilings: DEFAULT_CEILINGS, policies: [] });
  });

  it('the one that asks for the most labels wins, also when it is the more lenient one', () => {
    const all = policy('all', { objects: { instances: 1 } });
    const gold = policy('gold', { namespaceLabels: { tier: 'gold' }, objects: { instances: 50 } });
    const other = policy('other', { namespaceLabels: { tier: 'silver', x: 'y' }, objects: { instances: 7 } });
    const found = resolveCeilings({ tier: 'gold', team: 'a' }, [all, gold, other]);
    expect([found.policies, found.ceilings.objects.instances]).toEqual([['gold'], 50]);
    expect(resolveCeilings({}, [all, gold, other]).policies).toEqual(['all']);
  });

  it('several that ask for as many hold together, in any order, and allow nothing that one of them refuses', () => {
    const image = fc.oneof(IMAGE, PATTERN);
    fc.assert(
      fc.property(fc.array(CEILINGS, { minLength: 2, maxLength: 4 }), image, (all, one) => {
        const policies = all.map((spec, index) => policy(`p${index}`, spec));
        const { ceilings, policies: names } = resolveCeilings({}, policies);
        expect(names).toHaveLength(all.length);
        for (const own of all) {
          if (!allowsImage(own.images, one)) expect(allowsImage(ceilings.images, one)).toBe(false);
          for (const pool of ['x', 'y', 'other']) {
            for (const product of ['x', 'z', 'other']) {
              expect(gpusAllowed(ceilings, pool, product)).toBeLessThanOrEqual(gpusAllowed(own, pool, product));
            }
          }
          for (const [field, most] of Object.entries(own.objects)) {
            expect(ceilings.objects[field as keyof Ceilings['objects']]).toBeLessThanOrEqual(most);
          }
          expect(ceilings.models.callsPerMinute ?? Infinity).toBeLessThanOrEqual(own.models.callsPerMinute ?? Infinity);
          expect(ceilings.ssh.connections).toBeLessThanOrEqual(own.ssh.connections);
          expect(ceilings.runtimeClassNames.filter((name) => !own.runtimeClassNames.includes(name))).toEqual([]);
          if (own.userNamespaces === 'Required') expect(ceilings.userNamespaces).toBe('Required');
        }
        // What all of them allow stays allowed.
        if (all.every((own) => allowsImage(own.images, one))) expect(allowsImage(ceilings.images, one)).toBe(true);
        const { ceilings: turned } = resolveCeilings({}, policies.toReversed());
        expect(new Set(turned.images)).toEqual(new Set(ceilings.images));
        expect({ ...turned, images: [], gpus: [] }).toEqual({
          ...ceilings,
          images: [],
          gpus: [],
          runtimeClassNames: expect.arrayContaining(ceilings.runtimeClassNames) as string[],
        });
      }),
    );
  });

  it('together make no TenantLimit that the API server would refuse', () => {
    const many = (start: string): object => ({
      images: Array.from({ length: MOST_ENTRIES }, (_, index) => `${start}${'a'.repeat(index)}*`),
      gpus: Array.from({ length: MOST_ENTRIES }, (_, index) => ({ pool: `${start}${index}`, max: index + 3 })),
      runtimeClassNames: Array.from({ length: 32 }, (_, index) => `c${index}`),
    });
    const policies = Array.from({ length: 100 }, (_, index) => policy(`p${index}`, many(index % 2 === 0 ? 'r' : 'ra')));
    const { ceilings, policies: names } = resolveCeilings({}, policies);
    expect(tenantLimitSpecSchema.safeParse({ ...ceilings, policies: names }).error).toBeUndefined();
    // More places than a list may have: one ceiling over all GPUs, and the smallest of them all.
    expect(ceilings.gpus).toEqual([{ pool: '*', product: '*', max: 3 }]);
  });
});

describe('a policy that cannot be read', () => {
  it.each([
    ['an image with two stars', { images: ['a*b*'] }],
    ['no number', { objects: { instances: 'many' } }],
    ['labels that are a text', { namespaceLabels: 'tier=gold' }],
    ['labels that are a list', { namespaceLabels: [{ tier: 'gold' }] }],
    ['nothing at all', undefined],
    ['a list', []],
  ])('with %s closes what it covers', (_name, spec) => {
    const bad = broken('bad', spec as object);
    expect(readPolicy(bad)).toBeUndefined();
    expect(resolveCeilings({ tier: 'gold' }, [bad]).ceilings).toEqual(CLOSED_CEILINGS);
    const both = resolveCeilings({}, [policy('good', { objects: { instances: 5 } }), bad]);
    expect([both.policies, both.ceilings.objects.instances, both.ceilings.images]).toEqual([['bad', 'good'], 0, []]);
  });

  it('closes no more than it covers', () => {
    const bad = broken('bad', { namespaceLabels: { tier: 'gold' }, images: 1 });
    expect(resolveCeilings({}, [bad]).ceilings).toEqual(DEFAULT_CEILINGS);
    expect(resolveCeilings({ tier: 'gold' }, [bad]).ceilings).toEqual(CLOSED_CEILINGS);
  });
});

describe('the reader of ceilings', () => {
  function cacheOf<T extends KubeObject>(objects: T[]): Cache<T> {
    const cache = new Cache<T>({ onListenerError: () => undefined });
    cache.replace(objects, '1');
    return cache;
  }
  const versioned = <T extends KubeObject>(object: T, resourceVersion: string): T => ({
    ...object,
    metadata: { ...object.metadata, resourceVersion },
  });

  it('follows policies and labels, and closes a namespace that it does not know', () => {
    const policies = cacheOf([policy('all', { objects: { instances: 1 } })]);
    const namespaces = cacheOf<Namespace>([{ metadata: { name: 'a', resourceVersion: '1' } }]);
    const read = limitReader(policies.store, namespaces.store);
    expect(read('b')).toEqual({ ...CLOSED_CEILINGS, policies: [] });
    expect([read('a').policies, read('a').objects.instances]).toEqual([['all'], 1]);
    expect(read('a')).toBe(read('a'));
    policies.upsert(versioned(policy('gold', { namespaceLabels: { tier: 'gold', z: '1' } }), '2'));
    expect(read('a').policies).toEqual(['all']);
    namespaces.upsert({ metadata: { name: 'a', resourceVersion: '3', labels: { z: '1', tier: 'gold' } } });
    expect(read('a').policies).toEqual(['gold']);
    policies.upsert(versioned(policy('all', { objects: { instances: 9 } }), '4'));
    expect(read('a').policies).toEqual(['gold']);
    namespaces.upsert({ metadata: { name: 'a', resourceVersion: '5', labels: { tier: 'gold' } } });
    expect([read('a').policies, read('a').objects.instances]).toEqual([['all'], 9]);
  });

  it('finds what resolving among all policies finds', () => {
    const labels = fc.dictionary(fc.constantFrom('k', 'l', 'm'), fc.constantFrom('1', '2'));
    fc.assert(
      fc.property(fc.array(labels, { maxLength: 8 }), labels, (asked, own) => {
        const all = asked.map((namespaceLabels, index) => policy(`p${index}`, { namespaceLabels }));
        const namespaces = cacheOf<Namespace>([{ metadata: { name: 'a', labels: own } }]);
        const { ceilings, policies } = resolveCeilings(own, all);
        expect(limitReader(cacheOf(all).store, namespaces.store)('a')).toEqual({ ...ceilings, policies });
      }),
    );
  });
});
