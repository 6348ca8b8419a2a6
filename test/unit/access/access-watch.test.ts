import { beforeEach, describe, expect, it } from 'vitest';
import { AccessWatch } from '../../../src/access/access-watch.ts';
import { Authenticator, type Caller, type Use } from '../../../src/access/authenticator.ts';
import { Tenants } from '../../../src/access/tenants.ts';
import { INDEXES } from '../../../src/caches/indexes.ts';
import type { Namespace } from '../../../src/kube/types.ts';
import { type ApiKey, hashToken } from '../../../src/resources/api-key.ts';
import { TENANT_LABEL } from '../../../src/resources/tenants/tenant-policy.ts';
import { cacheOf } from '../../support/controller-world.ts';
import { type FakeClock, fakeClock } from '../../support/fake-clock.ts';

const CALLER: Caller = { keyId: 'uid', namespace: 'team' };
const PERSON: Caller = { ...CALLER, keyId: 'person/ab/9999999999999', vouchedUntil: Date.UTC(2026, 0, 1, 0, 1) };
const USE: Use = { scope: 'models', model: 'org/small', isOneCall: true };

let version = 0;
/** A cache keeps the object that it has of a version. */
function newVersion(): string {
  version += 1;
  return String(version);
}

function apiKey(spec: Partial<ApiKey['spec']> = {}, metadata: object = {}): ApiKey {
  const base = { hash: hashToken('token'), prefix: '', displayName: '', revoked: false };
  return {
    metadata: {
      name: 'key',
      namespace: 'team',
      uid: 'uid',
      resourceVersion: newVersion(),
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...metadata,
    },
    spec: { ...base, scopes: ['models'], ...spec },
  };
}

function space(name: string, metadata: object = {}): Namespace {
  return { metadata: { name, resourceVersion: newVersion(), labels: { [TENANT_LABEL]: 'true' }, ...metadata } };
}

let clock: FakeClock;
let apiKeys: ReturnType<typeof cacheOf<ApiKey>>;
let namespaces: ReturnType<typeof cacheOf<Namespace>>;
let authenticator: Authenticator;
let watch: AccessWatch;

beforeEach(() => {
  clock = fakeClock();
  apiKeys = cacheOf([apiKey()], INDEXES.apiKeys);
  namespaces = cacheOf([space('team'), space('berth-system'), space('kube-system')]);
  const tenants = new Tenants(namespaces.store, { own: 'berth-system', requireLabel: true });
  authenticator = new Authenticator({ apiKeys: apiKeys.store, tenants, clock });
  watch = new AccessWatch({ authenticator, apiKeys: apiKeys.store, tenants, clock });
});

function whyEnded(signal: AbortSignal): string | undefined {
  return signal.aborted ? (signal.reason as Error).message : undefined;
}

const TAKEN: [name: string, take: () => void, why: RegExp][] = [
  ['the key is revoked', () => apiKeys.upsert(apiKey({ revoked: true })), /key is over/],
  ['the key is deleted', () => apiKeys.remove(apiKey()), /key is over/],
  ['a finalizer holds the key', () => apiKeys.upsert(apiKey({}, { deletionTimestamp: 'now' })), /key is over/],
  ['the scope goes', () => apiKeys.upsert(apiKey({ scopes: ['compute:read'] })), /lost the scope models/],
  ['the model goes', () => apiKeys.upsert(apiKey({ models: ['org/large*'] })), /no longer call the model 'org\/small'/],
  ['the label goes', () => namespaces.upsert(space('team', { labels: {} })), /kubectl label namespace team/],
  ['the namespace goes', () => namespaces.upsert(space('team', { deletionTimestamp: 'now' })), /being deleted/],
  ['the namespace is gone', () => namespaces.remove(space('team')), /is gone/],
];

describe('an access under way', () => {
  it.each(TAKEN)('ends at once when %s', (_name, take, why) => {
    const access = watch.open(CALLER, USE);
    expect(access.signal.aborted).toBe(false);
    take();
    expect(whyEnded(access.signal)).toMatch(why);
  });

  it.each(TAKEN)('has ended already when %s before it began', (_name, take, why) => {
    take();
    expect(whyEnded(watch.open(CALLER, USE).signal)).toMatch(why);
  });

  it('goes on while its key, scope, model and namespace are there, whatever else changes', async () => {
    const access = watch.open(CALLER, USE);
    apiKeys.upsert(apiKey({ limits: { requestsPerMinute: 1 }, scopes: ['models', 'compute:read'], models: ['org/*'] }));
    namespaces.upsert(space('team', { labels: { [TENANT_LABEL]: 'true', tier: 'gold' } }));
    namespaces.upsert(space('other', { deletionTimestamp: 'now' }));
    await clock.advance(5000);
    expect(access.signal.aborted).toBe(false);
  });

  it.each<[string, Caller]>([
    ['a key', CALLER],
    ['the token of a person', PERSON],
    ['the sign-in of a person', { ...CALLER, keyId: `person/ab/${Date.UTC(2026, 0, 1, 0, 1)}` }],
  ])('ends within a second when the time of %s is over', async (_name, caller) => {
    apiKeys.upsert(apiKey({ expiresAt: '2026-01-01T00:01:00Z', scopes: ['compute:read'] }));
    const access = watch.open(caller, { scope: 'compute:read' });
    await clock.advance(59_000);
    expect(access.signal.aborted).toBe(false);
    await clock.advance(2000);
    expect(whyEnded(access.signal)).toMatch(/over/);
  });

  it('of a person who calls a model goes on for as long as the dashboard vouches for them', async () => {
    const answers: (number | undefined | 'silence')[] = [];
    const vouch = (): Promise<number | undefined> => {
      const answer = answers.shift() ?? 'silence';
      return answer === 'silence' ? Promise.reject(new Error('no answer')) : Promise.resolve(answer);
    };
    const caller = { ...PERSON, vouch };
    const [call, stream] = [watch.open(caller, USE), watch.open({ ...caller }, { scope: 'compute:read' })];
    for (let second = 0; second < 90; second += 1) {
      answers.push(...Array.from({ length: 4 }, () => clock.now() + 20_000));
      await clock.advance(1000);
      answers.length = 0;
    }
    // Streams go on with the next token.
    expect([call.signal.aborted, stream.signal.aborted]).toEqual([false, true]);
    await clock.advance(15_000);
    expect(call.signal.aborted).toBe(false);
    await clock.advance(10_000);
    expect(whyEnded(call.signal)).toMatch(/over/);
  });

  it('of a person ends within a second when the cluster takes the role away, whatever it is', async () => {
    let asked = 0;
    let until: number | undefined = clock.now() + 20_000;
    const vouch = (): Promise<number | undefined> => {
      asked += 1;
      return Promise.resolve(until);
    };
    const open = (use: Use) => watch.open({ ...PERSON, vouch }, use);
    const all = [open(USE), open({ scope: 'compute:read' }), open({ scope: 'compute:read' })];
    await clock.advance(500);
    // Once for each scope.
    expect(asked).toBe(2);
    until = undefined;
    await clock.advance(1000);
    for (const { signal } of all) expect(whyEnded(signal)).toMatch(/role was taken away/);
    for (const one of all) one.close();
    await clock.advance(1000);
    expect(clock.pending).toBe(0);
  });

  it('ends when it turns out to be a call of another model', () => {
    apiKeys.upsert(apiKey({ models: ['org/large'] }));
    const access = watch.open(CALLER, { scope: 'models' });
    expect(access.signal.aborted).toBe(false);
    access.narrow('org/small');
    expect(whyEnded(access.signal)).toMatch(/no longer call/);
  });

  it('is looked at no more when its caller has closed it', async () => {
    const access = watch.open(CALLER, USE);
    access.close();
    apiKeys.remove(apiKey());
    expect(access.signal.aborted).toBe(false);
    await clock.advance(1000);
    expect(clock.pending).toBe(0);
  });
});

describe('a namespace of the cluster or of Berth', () => {
  it.each(['berth-system', 'kube-system'])('%s is no tenant, whatever its labels say', (namespace) => {
    apiKeys.upsert(apiKey({}, { namespace }));
    expect(whyEnded(watch.open({ ...CALLER, namespace }, USE).signal)).toMatch(/is no tenant of Berth: it belongs/);
  });
});
