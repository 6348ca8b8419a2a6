import { expect, test } from 'vitest';
import { type Deps, printPlan, readHoldings, uninstall } from '../../../src/commands/uninstall.ts';
import type { ListOptions } from '../../../src/kube/client/client.ts';
import { ForbiddenError, NotFoundError } from '../../../src/kube/errors.ts';
import type { KubeObject, ObjectRef, ResourceType } from '../../../src/kube/types.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { CUSTOM_RESOURCES } from '../../../src/resources/index.ts';

interface World extends Deps {
  /** What was done, in order. */
  done: string[];
  objects: Map<string, KubeObject[]>;
}

function named(name: string, more: Partial<KubeObject['metadata']> = {}): KubeObject {
  return { metadata: { name, namespace: 'acme', uid: `uid-${name}`, ...more } };
}

function controller(annotations?: Record<string, string>, readyReplicas = 1): KubeObject {
  const labels = { 'app.kubernetes.io/part-of': 'berth', 'app.kubernetes.io/component': 'controller' };
  const metadata = { name: 'berth-controller', namespace: 'berth-system', labels, ...(annotations && { annotations }) };
  return { metadata, status: { readyReplicas } } as KubeObject;
}

const BY_HELM = { 'meta.helm.sh/release-name': 'berth' };

function fits({ labels = {} }: KubeObject['metadata'], selector: string): boolean {
  if (selector === '') return true;
  return selector.split(',').every((term) => {
    const [key = '', value] = term.split('=');
    return value === undefined ? key in labels : labels[key] === value;
  });
}

/** A cluster that forgets an object when it is deleted, and Berth when helm says so. */
function worldOf(objects: Record<string, KubeObject[]>, isStubborn: (name: string) => boolean = () => false): World {
  const held = new Map(Object.entries(objects));
  const done: string[] = [];
  return {
    done,
    objects: held,
    clock: { ...systemClock(), sleep: () => Promise.resolve() },
    say: (line) => done.push(`says ${line}`),
    helm: (args) => {
      done.push(`helm ${args.join(' ')}`);
      if (args[0] === 'uninstall') held.delete('deployments');
      return Promise.resolve();
    },
    client: {
      get: () => Promise.reject(new Error('Nothing is read singly.')),
      list: <T extends KubeObject>({ plural }: ResourceType<T>, options: ListOptions = {}) => {
        const items = held.get(plural);
        if (items === undefined && CUSTOM_RESOURCES.some((one) => one.plural === plural)) {
          const fields = { message: `no ${plural}`, status: 404, reason: 'NotFound' };
          return Promise.reject(new NotFoundError(fields));
        }
        const found = (items ?? []).filter(({ metadata }) => fits(metadata, options.labelSelector ?? ''));
        return Promise.resolve({ items: found as T[], resourceVersion: '1' });
      },
      delete: ({ plural }: ResourceType, { name }: ObjectRef) => {
        done.push(`delete ${plural} ${name}`);
        const left = (held.get(plural) ?? []).filter((one) => one.metadata.name !== name || isStubborn(name));
        if (held.has(plural)) held.set(plural, left);
        return Promise.resolve();
      },
    },
  };
}

function rented(): Record<string, KubeObject[]> {
  return {
    gpuinstances: [named('one'), named('two')],
    apikeys: [named('key')],
    usagerecords: [named('bill')],
    tokenrecords: [],
    gpupools: [named('a100')],
    tenantlimits: [named('berth')],
    deployments: [controller(BY_HELM)],
    namespaces: [named('acme', { labels: { 'berth.dev/tenant': 'true' } }), named('other')],
    persistentvolumeclaims: [
      named('one-disk', { labels: { 'berth.dev/disk-policy': 'Delete' } }),
      named('two-disk', { labels: { 'berth.dev/disk-policy': 'Retain' } }),
      named('old-disk', { labels: { 'berth.dev/retained-from': 'old' } }),
      named('own', { labels: {} }),
    ],
    resourcequotas: [named('berth', { labels: { 'app.kubernetes.io/managed-by': 'berth' } }), named('their-own')],
  };
}

async function remove(world: World, isBilling = false): Promise<string[]> {
  await uninstall(world, await readHoldings(world.client), isBilling);
  return world.done;
}

const REFUSED =
  'DELETE resourcequotas: 403 Forbidden: ValidatingAdmissionPolicy berth-limits denied request: only Berth';

/** A world whose API server refuses so many deletions of quotas, by a policy that helm has removed. */
function behind(refusals: number): World {
  const world = worldOf(rented());
  const { client } = world;
  let left = refusals;
  const { delete: remove } = client;
  client.delete = (type, ref, options) => {
    if (type.plural !== 'resourcequotas' || left === 0) return remove(type, ref, options);
    left -= 1;
    return Promise.reject(new ForbiddenError({ message: REFUSED, status: 403, reason: 'Forbidden' }));
  };
  return world;
}

test('an API server that still has the policies which went is waited for, and not for ever', async () => {
  const done = await remove(behind(3));
  expect(done.filter((line) => line.includes('still has'))).toHaveLength(1);
  expect(done).toContain('delete resourcequotas berth');
  await expect(remove(behind(1000))).rejects.toThrow('berth-limits');
});

test('instances go while a controller bills them, then what made them, then Berth, then its definitions', async () => {
  const done = await remove(worldOf(rented()));
  expect(done.slice(0, 12)).toEqual([
    'helm status berth --namespace berth-system',
    'says deletes 2 gpuinstances',
    'delete gpuinstances one',
    'delete gpuinstances two',
    'says deletes 1 apikeys',
    'delete apikeys key',
    'says deletes 1 gpupools',
    'delete gpupools a100',
    'says helm uninstall berth',
    'helm uninstall berth --namespace berth-system --wait',
    'says definitions, quotas, priority classes',
    'delete customresourcedefinitions gpuinstances.berth.dev',
  ]);
  expect(done.filter((line) => /namespaces|persistentvolumeclaims|usagerecords|their-own/.test(line))).toEqual([]);
  expect(done).toContain('delete resourcequotas berth');
  expect(done.at(-1)).toBe('delete priorityclasses berth-interruptible');
});

test('bills go only when that is asked for', async () => {
  const done = await remove(worldOf(rented()), true);
  expect(done.indexOf('delete usagerecords bill')).toBeGreaterThan(done.indexOf('delete gpuinstances two'));
  expect(done).toContain('delete customresourcedefinitions usagerecords.berth.dev');
});

test('a run after an interruption removes what is left', async () => {
  const world = worldOf(rented());
  await remove(world);
  world.done.length = 0;
  await expect(remove(world)).resolves.not.toContain('says helm uninstall berth');
});

test.each<[string, Partial<Record<string, KubeObject[]>>, RegExp]>([
  [
    'no controller',
    { deployments: [] },
    /only a running controller bills .* there are 2 gpuinstances: install the chart again/,
  ],
  ['a controller that is not ready', { deployments: [controller(BY_HELM, 0)] }, /No controller is ready/],
  ['two controllers', { deployments: [controller(BY_HELM), controller()] }, /more than one controller/],
])('with %s nothing is changed while there are instances', async (_, change, message) => {
  const world = worldOf({ ...rented(), ...change } as Record<string, KubeObject[]>);
  await expect(remove(world)).rejects.toThrow(message);
  expect(world.done).toEqual([]);
});

test('an installation without Helm keeps its definitions until its manifests are deleted', async () => {
  const world = worldOf({ ...rented(), deployments: [controller()] });
  await expect(remove(world)).rejects.toThrow('kubectl delete the manifests');
  expect(world.done.filter((line) => line.includes('customresourcedefinitions'))).toEqual([]);
});

test('says which instance holds it up, and goes on when that has gone', async () => {
  let looks = 0;
  const world = worldOf(rented(), (name) => name === 'two');
  const { list } = world.client;
  world.client.list = (type, options) => {
    looks += 1;
    if (looks === 80) world.objects.set('gpuinstances', []);
    return list(type, options);
  };
  const done = await remove(world);
  expect(done.filter((line) => /^says (?!deletes)/.test(line))).toEqual([
    'says 1 instance left',
    'says still there: acme/two. kubectl describe gpuinstance and berth doctor say what holds it',
    'says helm uninstall berth',
    'says definitions, quotas, priority classes',
  ]);
});

test('Berth goes when the Secrets of registries have gone with their credentials', async () => {
  let looks = 0;
  const world = worldOf({ ...rented(), registrycredentials: [named('ghcr')] }, (name) => name === 'ghcr');
  const { list } = world.client;
  world.client.list = (type, options) => {
    if (type.plural === 'registrycredentials' && (looks += 1) === 6) world.objects.set('registrycredentials', []);
    return list(type, options);
  };
  const done = await remove(world);
  expect(looks).toBeGreaterThan(5);
  expect(done.indexOf('says 1 registry credential left')).toBeGreaterThan(
    done.indexOf('delete registrycredentials ghcr'),
  );
  expect(done.indexOf('says helm uninstall berth')).toBeGreaterThan(done.indexOf('says 1 registry credential left'));
  const left = worldOf({ registrycredentials: [named('ghcr')], deployments: [] });
  await expect(remove(left)).rejects.toThrow('there are 1 registrycredentials: install the chart again');
});

test('gives up when others make instances again and again', async () => {
  const world = worldOf(rented());
  const { delete: remembered } = world.client;
  world.client.delete = async (type, ref, options) => {
    await remembered(type, ref, options);
    if (type.plural === 'apikeys') world.objects.set('gpuinstances', [named('again')]).set('apikeys', [named('key')]);
  };
  await expect(remove(world)).rejects.toThrow('Others make instances');
  expect(world.done.filter((line) => line.startsWith('helm uninstall'))).toEqual([]);
});

test('gives up when others make credentials again, which only a controller lets go', async () => {
  const world = worldOf({ ...rented(), registrycredentials: [named('ghcr')] });
  const { list } = world.client;
  world.client.list = (type, options) => {
    const isGone = world.objects.get('registrycredentials')?.length === 0;
    if (type.plural === 'gpuinstances' && isGone) world.objects.set('registrycredentials', [named('ghcr')]);
    return list(type, options);
  };
  await expect(remove(world)).rejects.toThrow('Others make instances or credentials of registries');
  expect(world.done.filter((line) => line.startsWith('helm uninstall'))).toEqual([]);
});

test('a later installation finds no note of the pools that went with this one', async () => {
  const noted = named('berth-controller', { annotations: { 'berth.dev/had-pool': 'true' } });
  const world = worldOf({ ...rented(), leases: [noted, named('of-others')] });
  const done = await remove(world);
  expect(done.filter((line) => line.startsWith('delete leases'))).toEqual(['delete leases berth-controller']);
  expect(done.indexOf('delete leases berth-controller')).toBeGreaterThan(done.indexOf('says helm uninstall berth'));
});

test('a dry run says what goes and what stays', async () => {
  expect(printPlan(await readHoldings(worldOf(rented()).client), false))
    .toBe(`Goes, instances first, each billed to its end:
        2 gpuinstances
        1 apikeys
        1 gpupools
        1 tenantlimits
        1 disks of these instances, as their diskPolicy says
  the release berth in namespace berth-system, definitions, quotas and priority classes
Stays:
  1 usagerecords and 0 tokenrecords with their definitions: what was billed (--bills removes them too)
  1 namespace of tenants acme
  2 disks of instances acme/old-disk acme/two-disk
  Berth's own namespace
`);
});
