import { beforeEach, describe, expect, it } from 'vitest';
import { INDEXES } from '../../../src/caches/indexes.ts';
import type { Namespace, Pod } from '../../../src/kube/types.ts';
import { Cache } from '../../../src/kube/watch/cache.ts';
import type { ReadStore } from '../../../src/kube/watch/store.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { numericId } from '../../../src/resources/ids.ts';
import { publicKeyOf, type SshKey } from '../../../src/resources/ssh-key.ts';
import { SshPublicKeyError } from '../../../src/resources/ssh-public-key.ts';
import { StoreDirectory, type InstanceView } from '../../../src/ssh/directory.ts';
import { Tenants } from '../../../src/access/tenants.ts';
import type { AuthorizedKey } from '../../../src/ssh/login/authorized-key.ts';
import { newEd25519Key } from '../../../src/ssh/login/ed25519-key.ts';

const onListenerError = (error: unknown): never => {
  throw error;
};
let version = 0;
let instances: Cache<GpuInstance>;
let keys: Cache<SshKey>;
let pods: Cache<Pod>;
let namespaces: Cache<Namespace>;
let tenants: Tenants;
let directory: StoreDirectory;

beforeEach(() => {
  instances = new Cache({ indexers: INDEXES.instances, onListenerError });
  keys = new Cache({ indexers: INDEXES.sshKeys, onListenerError });
  pods = new Cache<Pod>({ onListenerError });
  namespaces = new Cache<Namespace>({ onListenerError });
  tenants = new Tenants(namespaces.store, { own: 'berth-system', requireLabel: true });
  directory = new StoreDirectory({ instances: instances.store, keys: keys.store, pods: pods.store, tenants });
});

function meta(namespace: string, name: string, more: object = {}) {
  version += 1;
  return { namespace, name, uid: `${namespace}-${name}`, resourceVersion: String(version), ...more };
}

function addInstance(
  namespace: string,
  name: string,
  sshKeyIds: number[] = [],
  more: { metadata?: object; status?: object } = {},
): InstanceView {
  const object = {
    metadata: meta(namespace, name, more.metadata),
    spec: { sshKeyIds },
    status: { podName: `${name}-1`, ...more.status },
  };
  instances.upsert(object as unknown as GpuInstance);
  const view = directory.find({ instance: name, namespace });
  if (view === undefined) throw new Error('The instance was not found.');
  return view;
}

function addKey(namespace: string, name: string, more: object = {}, publicKey = newEd25519Key('').public): SshKey {
  const key = { metadata: meta(namespace, name, more), spec: { publicKey, displayName: '' } };
  keys.upsert(key);
  return key;
}

function fingerprintOf(key: SshKey): string {
  const read = publicKeyOf(key);
  if (read instanceof SshPublicKeyError) throw read;
  return read.fingerprint;
}

function keysOf(view: InstanceView, key: SshKey): AuthorizedKey[] {
  return [...directory.tenantKeys(view, fingerprintOf(key))];
}

function addPod(namespace: string, name: string, state: object, more: object = {}): void {
  const status = { containerStatuses: [{ name: 'main', state }] };
  pods.upsert({ metadata: meta(namespace, name, more), spec: { containers: [] }, status } as unknown as Pod);
}

describe('an instance', () => {
  it('is found by its name and its namespace', () => {
    addInstance('a', 'i-one');
    addInstance('b', 'i-one');
    expect(directory.find({ instance: 'i-one', namespace: 'a' })?.uid).toBe('a-i-one');
    expect(directory.find({ instance: 'i-one', namespace: 'b' })?.uid).toBe('b-i-one');
    expect(directory.find({ instance: 'i-one', namespace: 'c' })).toBeUndefined();
    expect(directory.find({ instance: 'i-two', namespace: 'a' })).toBeUndefined();
  });

  it.each<[string, object, { pod?: object; instance?: object }, boolean]>([
    ['running', { running: {} }, {}, true],
    ['waiting', { waiting: {} }, {}, false],
    ['running in a pod that is being deleted', { running: {} }, { pod: { deletionTimestamp: 'now' } }, false],
    ['running and being deleted', { running: {} }, { instance: { deletionTimestamp: 'now' } }, false],
  ])('%s has a target: %4$s', (_name, state, { pod, instance }, expected) => {
    addPod('a', 'i-1', state, pod);
    expect(addInstance('a', 'i', [], { metadata: instance }).target?.pod).toBe(expected ? 'i-1' : undefined);
  });

  it('on a simulated node has no target, and says so', () => {
    addPod('a', 'i-1', { running: {} });
    const view = addInstance('a', 'i', [], { status: { claim: { simulated: true } } });
    expect(view.target).toBeUndefined();
    expect(view.condition).toBe('on a simulated node: nothing runs there, so there is nothing to log in to.');
  });
});

describe('a bare name', () => {
  const bare = (): string | undefined => directory.find({ instance: 'i-one', namespace: undefined })?.uid;
  /** An instance whose record published its bare name, as records once did. */
  const published = (namespace: string, second: number): void => {
    const creationTimestamp = `2026-01-01T00:00:0${second}Z`;
    const status = { ssh: { host: 'h', port: 1, user: 'i-one' } };
    addInstance(namespace, 'i-one', [], { metadata: { creationTimestamp }, status });
  };

  it('opens nothing when it was never published', () => {
    addInstance('a', 'i-one');
    expect(bare()).toBeUndefined();
  });

  it('opens the instance that published it, also when others take the name, and nothing after its end', () => {
    published('victim', 5);
    addInstance('attacker', 'i-one', [], { metadata: { creationTimestamp: '2026-01-01T00:00:00Z' } });
    expect(bare()).toBe('victim-i-one');
    const victim = instances.store.get('victim/i-one');
    if (victim !== undefined) instances.remove(victim);
    expect(bare()).toBeUndefined();
  });

  it('opens the oldest of several that published it', () => {
    published('attacker', 2);
    published('victim', 1);
    expect(bare()).toBe('victim-i-one');
    published('twin', 1);
    expect(bare()).toBeUndefined();
  });
});

describe('a key', () => {
  it('opens the instances of its namespace that name it, or name none', () => {
    const [first, second] = [addKey('a', 'first'), addKey('a', 'second')];
    addKey('b', 'other');
    const view = addInstance('a', 'open');
    const narrow = addInstance('a', 'narrow', [numericId(second.metadata.uid ?? '')]);
    const known = [first, second].flatMap((key) => keysOf(view, key));
    expect(known.map(({ resource }) => resource)).toEqual(['a/first', 'a/second']);
    expect(known.map((key) => directory.opens(key, view))).toEqual([true, true]);
    expect(known.map((key) => directory.opens(key, narrow))).toEqual([false, true]);
    expect(known.map((key) => directory.opens(key, addInstance('b', 'open')))).toEqual([false, false]);
    keys.remove(first);
    expect(known.map((key) => directory.opens(key, view))).toEqual([false, true]);
  });

  it('opens nothing once it is replaced, is being deleted, or cannot be read', () => {
    const view = addInstance('a', 'open');
    const old = addKey('a', 'k');
    const [before] = keysOf(view, old);
    if (before === undefined) throw new Error('The key was not found.');
    const next = addKey('a', 'k');
    expect(directory.opens(before, view)).toBe(false);
    expect(keysOf(view, old)).toEqual([]);
    const [after] = keysOf(view, next);
    expect(after && directory.opens(after, view)).toBe(true);
    addKey('a', 'k', { deletionTimestamp: 'now' }, next.spec.publicKey);
    expect(after && directory.opens(after, view)).toBe(false);
    expect(keysOf(view, next)).toEqual([]);
    addKey('a', 'k', {}, 'no key');
    expect(keysOf(view, next)).toEqual([]);
  });

  it.each([0, 1, 2])(
    'that is stored several times is first the one that opens the instance, here copy %i',
    (opening) => {
      const line = newEd25519Key('').public;
      const copies = [0, 1, 2].map((n) => addKey('a', `copy-${n}`, {}, line));
      const id = numericId(copies[opening]?.metadata.uid ?? '');
      const found = copies.flatMap((key) => keysOf(addInstance('a', 'narrow', [id]), key).slice(0, 1));
      expect(found.map((key) => key.id)).toEqual([id, id, id]);
      expect(keysOf(addInstance('a', 'other', [1]), copies[0] as SshKey)).toHaveLength(3);
    },
  );

  it('is found without a look at others, however many the tenant has stored', () => {
    const view = addInstance('a', 'open');
    for (let n = 0; n < 1000; n += 1) addKey('a', `k${n}`);
    const mine = addKey('a', 'mine');
    const asked: string[] = [];
    const store: ReadStore<SshKey> = {
      ...keys.store,
      get: (key) => keys.store.get(key),
      by: (index, value) => {
        const found = keys.store.by(index, value);
        asked.push(...found.map(({ metadata }) => metadata.name));
        return found;
      },
    };
    const login = new StoreDirectory({ instances: instances.store, keys: store, pods: pods.store, tenants });
    expect([...login.tenantKeys(view, fingerprintOf(mine))].map(({ resource }) => resource)).toEqual(['a/mine']);
    expect([...login.tenantKeys(view, 'SHA256:of-a-stranger')]).toEqual([]);
    expect(asked).toEqual(['mine']);
  });
});

it('tells the namespaces of what changed, until it is told to stop', () => {
  const told: string[] = [];
  const stop = directory.onChange((namespace) => told.push(namespace));
  const key = addKey('a', 'k');
  addInstance('b', 'i');
  keys.remove(key);
  stop();
  addKey('c', 'k');
  expect(told).toEqual(['a', 'b', 'a']);
});

it('a namespace is closed unless it is a tenant, and tells when that changes', () => {
  const told: string[] = [];
  const labels = { 'berth.dev/tenant': 'true' };
  directory.onChange((namespace) => told.push(namespace));
  expect(directory.closed('a')).toMatch(/gone/);
  namespaces.upsert({ metadata: { name: 'a', labels, resourceVersion: '1' } });
  expect(directory.closed('a')).toBeUndefined();
  namespaces.upsert({ metadata: { name: 'a', resourceVersion: '2' } });
  expect(directory.closed('a')).toContain('kubectl label namespace a');
  namespaces.upsert({ metadata: { name: 'a', labels, resourceVersion: '3', deletionTimestamp: 'now' } });
  expect(directory.closed('a')).toMatch(/being deleted/);
  expect(told).toEqual(['a', 'a', 'a']);
});
