import { describe, expect, test } from 'vitest';
import { AlreadyExistsError, ConflictError, InvalidError, isGone, NotFoundError } from '../../../src/kube/errors.ts';
import { API_KEYS, type ApiKey, hashToken } from '../../../src/resources/api-key.ts';
import { statusPatch } from '../../../src/kube/status-patch.ts';
import { PODS } from '../../../src/kube/types.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { faultProxy } from '../../support/fault-proxy/proxy.ts';
import { refuseNext } from '../../support/fault-proxy/faults.ts';
import { CONFIG_MAPS, plainConnection, testNamespace } from '../../support/test-cluster.ts';

describe('against a real API server', () => {
  test('errors have the class of their Status', async () => {
    await using space = await testNamespace();
    const { client, name: namespace } = space;
    const object = { metadata: { name: 'a', namespace }, data: { k: 'v' } };
    await expect(client.get(CONFIG_MAPS, { namespace, name: 'a' })).rejects.toBeInstanceOf(NotFoundError);
    const made = await client.create(CONFIG_MAPS, object);
    await expect(client.create(CONFIG_MAPS, object)).rejects.toBeInstanceOf(AlreadyExistsError);
    const old = { ...object, metadata: { ...made.metadata, resourceVersion: '1' } };
    await expect(client.replace(CONFIG_MAPS, old)).rejects.toBeInstanceOf(ConflictError);
    const wrong = { metadata: { name: 'UPPER', namespace } };
    await expect(client.create(CONFIG_MAPS, wrong)).rejects.toBeInstanceOf(InvalidError);
    const elsewhere = { metadata: { name: 'a', namespace: 'no-such-namespace' } };
    await expect(client.create(CONFIG_MAPS, elsewhere)).rejects.toBeInstanceOf(NotFoundError);
  });

  test('a delete holds to the incarnation that was decided on', async () => {
    await using space = await testNamespace();
    const { client, name: namespace } = space;
    const ref = { namespace, name: 'a' };
    const made = await client.create(CONFIG_MAPS, { metadata: ref });
    await expect(client.delete(CONFIG_MAPS, ref, { uid: 'another' })).rejects.toBeInstanceOf(ConflictError);
    await client.delete(CONFIG_MAPS, ref, { uid: made.metadata.uid ?? '' });
    await client.delete(CONFIG_MAPS, ref, { uid: made.metadata.uid ?? '' });
    await expect(client.get(CONFIG_MAPS, ref)).rejects.toBeInstanceOf(NotFoundError);
  });

  test('a status is kept from a successor by a test of the uid, and not by the uid of a merge patch', async () => {
    await using space = await testNamespace();
    const { client, name: namespace } = space;
    const ref = { namespace, name: 'a' };
    const spec = {
      hash: hashToken('secret'),
      prefix: 'berth_a',
      displayName: '',
      revoked: false,
      scopes: ['models' as const],
    };
    const key: ApiKey = { metadata: ref, spec };
    const first = await client.create(API_KEYS, key);
    await client.delete(API_KEYS, ref, { uid: first.metadata.uid ?? '' });
    const second = await client.create(API_KEYS, key);
    const lastUsedTime = '2026-01-01T00:00:00Z';
    const write = (key: ApiKey, fields: object) =>
      client.patch(API_KEYS, ref, statusPatch(key, fields), { type: 'json', subresource: 'status' });
    await expect(write(first, { lastUsedTime })).rejects.toBeInstanceOf(ConflictError);
    await expect(write({ ...first, status: {} }, { lastUsedTime })).rejects.toBeInstanceOf(ConflictError);
    expect((await client.get(API_KEYS, ref)).status).toBeUndefined();
    const { uid } = first.metadata;
    const merge = { type: 'merge', subresource: 'status' } as const;
    const after = await client.patch(API_KEYS, ref, { metadata: { uid }, status: { lastUsedTime } }, merge);
    expect(after.metadata.uid).toBe(second.metadata.uid);
    const renamed = { metadata: { uid }, spec: { displayName: 'other' } };
    const refused: unknown = await client
      .patch(API_KEYS, ref, renamed, { type: 'merge' })
      .catch((error: unknown) => error);
    expect([isGone(refused), (await client.get(API_KEYS, ref)).spec.displayName]).toEqual([true, '']);
    const known: ApiKey = { ...second, status: {} };
    expect((await write(known, { lastUsedTime: '2026-01-02T00:00:00Z' })).status).toEqual({
      lastUsedTime: '2026-01-02T00:00:00Z',
    });
    for (let times = 0; times < 2; times += 1)
      expect((await write(known, { lastUsedTime: undefined })).status).toEqual({});
    await expect(write(second, { lastUsedTime })).rejects.toBeInstanceOf(ConflictError);
  });

  test('server-side apply removes what is no longer applied and leaves what others own', async () => {
    await using space = await testNamespace();
    const { client, name: namespace } = space;
    const options = { fieldManager: 'berth-test', force: true };
    const first = await client.apply(CONFIG_MAPS, configMap(namespace, { a: '1', b: '2' }), options);
    await client.patch(CONFIG_MAPS, first.metadata, { data: { other: 'x' } }, { type: 'merge' });
    const less = await client.apply(CONFIG_MAPS, configMap(namespace, { a: '1' }), options);
    expect(less.data).toEqual({ a: '1', other: 'x' });
  });

  test('a list comes by pages of one snapshot', async () => {
    await using space = await testNamespace();
    const { client, name: namespace } = space;
    await Promise.all(
      Array.from({ length: 7 }, (_, index) => client.create(CONFIG_MAPS, configMap(namespace, {}, `c-${index}`))),
    );
    const first = await client.list(CONFIG_MAPS, {
      namespace,
      limit: 5,
      fieldSelector: 'metadata.name!=kube-root-ca.crt',
    });
    await client.delete(CONFIG_MAPS, { namespace, name: 'c-6' });
    const next = first.continue ?? '';
    const second = await client.list(CONFIG_MAPS, {
      namespace,
      limit: 5,
      continue: next,
      fieldSelector: 'metadata.name!=kube-root-ca.crt',
    });
    expect(first.items.length + second.items.length).toBe(7);
    expect(second.resourceVersion).toBe(first.resourceVersion);
  });

  test('429 with Retry-After from in between is waited out', async () => {
    await using space = await testNamespace();
    await using proxy = await faultProxy(space.connection);
    const waits: number[] = [];
    const sleep = async (ms: number) => void waits.push(ms);
    const client = createKubeClient(plainConnection(proxy.server), { clock: { ...systemClock(), sleep } });
    proxy.faults.refuse = refuseNext(2, { status: 429, reason: 'TooManyRequests', retryAfter: 1 }, () => true);
    await client.create(CONFIG_MAPS, configMap(space.name, {}));
    expect(waits).toEqual([1_000, 1_000]);
    await client.close();
  });

  test('three hundred calls one after the other and fifty at once share a few connections', async () => {
    await using space = await testNamespace();
    const { client, connection, name: namespace } = space;
    let connections = 0;
    connection.calls.on('connect', () => (connections += 1));
    for (let index = 0; index < 300; index += 1) await client.list(PODS, { namespace });
    expect(connections).toBeLessThanOrEqual(3);
    await Promise.all(Array.from({ length: 50 }, () => client.list(PODS, { namespace })));
    expect(connections).toBeLessThanOrEqual(32);
  });
});

function configMap(namespace: string, data: Record<string, string>, name = 'a') {
  return { metadata: { name, namespace }, data };
}
