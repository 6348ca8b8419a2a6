import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Tenants } from '../../../src/access/tenants.ts';
import { INDEXES } from '../../../src/caches/indexes.ts';
import type { Namespace } from '../../../src/kube/types.ts';
import { type ApiKey, hashToken, SCOPES } from '../../../src/resources/api-key.ts';
import { TENANT_LABEL } from '../../../src/resources/tenants/tenant-policy.ts';
import { cacheOf } from '../../support/controller-world.ts';
import { type LoneApi, startLoneApi } from '../../support/http/lone-api.ts';
import { waitFor } from '../../support/wait-for.ts';

let version = 0;
/** A cache keeps the object that it has of a version. */
function newVersion(): string {
  version += 1;
  return String(version);
}

function keyIn(namespace: string, spec: Partial<ApiKey['spec']> = {}): ApiKey {
  return {
    metadata: {
      name: 'key',
      namespace,
      uid: `uid-${namespace}`,
      resourceVersion: newVersion(),
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: { hash: hashToken(namespace), prefix: '', displayName: '', revoked: false, scopes: [...SCOPES], ...spec },
    status: { lastUsedTime: '2100-01-01T00:00:00Z' },
  };
}

function space(name: string, more: object = {}): Namespace {
  return { metadata: { name, resourceVersion: newVersion(), labels: { [TENANT_LABEL]: 'true' }, ...more } };
}

const UNLABELLED = space('team', { labels: {} });
const GOING = space('team', { deletionTimestamp: '2026-01-01T00:00:00Z' });

let api: LoneApi;
let apiKeys: ReturnType<typeof cacheOf<ApiKey>>;
let namespaces: ReturnType<typeof cacheOf<Namespace>>;

beforeEach(async () => {
  apiKeys = cacheOf([keyIn('team'), keyIn('berth-system')], INDEXES.apiKeys);
  namespaces = cacheOf([space('team'), space('berth-system')]);
  api = await startLoneApi({
    tenants: [],
    apiKeys: apiKeys.store,
    namespaces: new Tenants(namespaces.store, { own: 'berth-system', requireLabel: true }),
  });
});
afterEach(() => api.close());

function call(path: string, { token = 'team', method = 'GET', accept = '*/*' } = {}): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, accept };
  return fetch(`http://127.0.0.1:${api.address.port}/api/v1${path}`, { method, headers });
}

const PATHS: [method: string, path: string][] = [
  ['GET', '/instances'],
  ['DELETE', '/instances/i-1'],
  ['POST', '/chat/completions'],
  ['GET', '/models'],
  ['GET', '/nothing'],
];

describe('a key', () => {
  it.each(PATHS)(
    'of a namespace that lost the label gets 403 at %s %s, with what to do about it',
    async (method, path) => {
      namespaces.upsert(UNLABELLED);
      const answer = await call(path, { method });
      expect(answer.status).toBe(403);
      const { error } = (await answer.json()) as { error: { code: string; message: string } };
      expect(error).toMatchObject({ code: 'not_a_tenant' });
      expect(error.message).toContain('kubectl label namespace team berth.dev/tenant=true');
    },
  );

  it.each(PATHS)('of a namespace that goes gets 401 at %s %s, as one that is over', async (method, path) => {
    const unknown = await call(path, { method, token: 'nobody' });
    for (const change of [() => namespaces.upsert(GOING), () => namespaces.remove(GOING)]) {
      change();
      const answer = await call(path, { method });
      expect([answer.status, await answer.text()]).toEqual([401, await unknown.clone().text()]);
    }
  });

  it("of Berth's own namespace opens nothing, and nobody is told to label that", async () => {
    const answer = await call('/instances', { token: 'berth-system' });
    expect(answer.status).toBe(403);
    expect(await answer.text()).not.toContain('kubectl label');
  });

  it('opens again what it opened before when the label is back', async () => {
    namespaces.upsert(UNLABELLED);
    expect((await call('/instances')).status).toBe(403);
    namespaces.upsert(space('team'));
    expect((await call('/instances')).status).toBe(200);
  });
});

describe('an event stream', () => {
  it.each<[string, () => void]>([
    ['its key is revoked', () => apiKeys.upsert(keyIn('team', { revoked: true }))],
    ['its key loses the scope', () => apiKeys.upsert(keyIn('team', { scopes: ['compute:write', 'models'] }))],
    ['its namespace loses the label', () => namespaces.upsert(UNLABELLED)],
    ['its namespace goes', () => namespaces.upsert(GOING)],
  ])('ends when %s', async (_when, take) => {
    const answer = await call('/instances', { accept: 'text/event-stream' });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    let isOver = false;
    const reading = (async () => {
      for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) text += next.value;
      isOver = true;
    })();
    await waitFor('the snapshot', () => text.includes('event: snapshot'));
    expect(isOver).toBe(false);
    take();
    await reading;
  });
});
