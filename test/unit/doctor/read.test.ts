import { expect, test } from 'vitest';
import type { KubeClient, ListOptions } from '../../../src/kube/client/client.ts';
import { ForbiddenError, GoneError, NotFoundError, TimeoutError } from '../../../src/kube/errors.ts';
import type { KubeObject, ResourceType } from '../../../src/kube/types.ts';
import { readCluster } from '../../../src/doctor/read.ts';
import { findingsOf } from '../../support/sound-installation.ts';

const FAILED = { message: 'GET /x: 403 Forbidden: no', status: 403, reason: 'Forbidden' };

function named(name: string): KubeObject {
  return { metadata: { name } };
}

type List = (plural: string, options: ListOptions) => { items: KubeObject[]; continue?: string };

/** A client that only lists and gets. Every other call would be a write, and throws. */
function readerOf(list: List) {
  const seen = { now: 0, most: 0, plurals: [] as string[] };
  const client = {
    list: async ({ plural }: ResourceType, options: ListOptions) => {
      seen.plurals.push(plural);
      seen.now += 1;
      seen.most = Math.max(seen.most, seen.now);
      await Promise.resolve();
      seen.now -= 1;
      return { resourceVersion: '1', ...list(plural, options) };
    },
    get: (_type: ResourceType, { name }: { name: string }) => Promise.resolve(named(name)),
  } as unknown as Pick<KubeClient, 'get' | 'list'>;
  return { client, seen };
}

test('reads page by page, a few kinds at a time, and no Secret', async () => {
  const asked: ListOptions[] = [];
  const { client, seen } = readerOf((plural, options) => {
    if (plural !== 'nodes') return { items: [] };
    asked.push(options);
    return options.continue === undefined ? { items: [named('a')], continue: 'more' } : { items: [named('b')] };
  });
  const { objects, unread, absent } = await readCluster(client);
  expect(objects.nodes.map(({ metadata }) => metadata.name)).toEqual(['a', 'b']);
  expect(asked).toEqual([{ limit: 500 }, { limit: 500, continue: 'more' }]);
  expect(objects.definitions.map(({ metadata }) => metadata.name)).toContain('gpupools.berth.dev');
  expect([unread.size, absent.size]).toEqual([0, 0]);
  expect(seen.most).toBeLessThanOrEqual(6);
  expect(seen.plurals).not.toContain('secrets');
});

test('reads a list whose next page is lost in one answer', async () => {
  const { client } = readerOf((plural, options) => {
    if (plural !== 'nodes') return { items: [] };
    if (options.continue !== undefined) throw new GoneError({ ...FAILED, status: 410 });
    return options.limit === undefined
      ? { items: [named('a'), named('b')] }
      : { items: [named('a')], continue: 'more' };
  });
  const { objects } = await readCluster(client);
  expect(objects.nodes.map(({ metadata }) => metadata.name)).toEqual(['a', 'b']);
});

test('a kind that may not be read, one that is not served and one that times out are told apart', async () => {
  const { client } = readerOf((plural) => {
    if (plural === 'servicemonitors') throw new NotFoundError({ ...FAILED, status: 404 });
    if (plural === 'daemonsets') throw new ForbiddenError(FAILED);
    if (plural === 'leases') throw new TimeoutError({ ...FAILED, message: 'no answer', status: 0 });
    return { items: [] };
  });
  const { unread, absent, objects } = await readCluster(client);
  expect([...absent]).toEqual(['serviceMonitors']);
  expect(unread.get('daemonSets')).toMatchObject({ right: 'list daemonsets.apps --all-namespaces' });
  expect(unread.get('nodeLeases')).toEqual({ message: 'no answer', right: undefined });
  expect(objects.daemonSets).toEqual([]);
});

test('an error that is not of the API server is thrown', async () => {
  const { client } = readerOf(() => {
    throw new RangeError('a fault of the program');
  });
  await expect(readCluster(client)).rejects.toThrow('a fault of the program');
});

test('a check whose kind may not be read is unknown, with the right that is missing, and says nothing else', () => {
  const right = 'list daemonsets.apps --all-namespaces';
  const found = findingsOf({
    objects: () => ({ daemonSets: [], networkPolicies: [] }),
    unread: [['daemonSets', { message: 'no', right }]],
  });
  expect(found).toEqual([
    {
      check: 'network',
      severity: 'unknown',
      reason: 'RightMissing',
      objects: [],
      message: `Not checked: you may not ${right}.`,
      why: expect.any(String),
      remedy: expect.stringMatching(`^kubectl auth can-i ${right} `),
    },
  ]);
});
