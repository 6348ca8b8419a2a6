import { expect, test } from 'vitest';
import { everyObject } from '../../../src/kube/client/every.ts';
import { toKubeError } from '../../../src/kube/errors.ts';
import { CONFIG_MAPS } from '../../support/test-cluster.ts';
import { scriptedClient } from '../../support/scripted-client.ts';

const page = (names: readonly string[], next?: string) => ({
  items: names.map((name) => ({ metadata: { name } })),
  resourceVersion: '1',
  ...(next && { continue: next }),
});

/** What the API server says when it has compacted the state that a list began with. */
function gone(next?: string): Error {
  const body = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old', metadata: { continue: next } };
  return toKubeError('GET /api', { status: 410, body });
}

async function namesOf(client: Parameters<typeof everyObject>[0]): Promise<string[]> {
  const names: string[] = [];
  for await (const { metadata } of everyObject(client, CONFIG_MAPS, { labelSelector: 'a=b' }))
    names.push(metadata.name);
  return names;
}

test('every page is read, with the same selector', async () => {
  const { client, lists, listQueries } = scriptedClient();
  lists.push(page(['a', 'b'], 'one'), page([], 'two'), page(['c']));
  expect(await namesOf(client)).toEqual(['a', 'b', 'c']);
  const same = { labelSelector: 'a=b', limit: 500, signal: undefined };
  expect(listQueries).toEqual([same, { ...same, continue: 'one' }, { ...same, continue: 'two' }]);
});

test('a list that took longer than the API server remembers goes on where it was', async () => {
  const { client, lists, listQueries } = scriptedClient();
  lists.push(page(['a'], 'one'), gone('from now'), page(['b']));
  expect(await namesOf(client)).toEqual(['a', 'b']);
  expect(listQueries.at(-1)).toMatchObject({ continue: 'from now' });
});

test('a list that cannot go on fails, and is not taken for whole', async () => {
  const { client, lists } = scriptedClient();
  lists.push(page(['a'], 'one'), gone());
  await expect(namesOf(client)).rejects.toThrow('410 Expired');
  lists.push(page(['a'], 'one'), new Error('away'));
  await expect(namesOf(client)).rejects.toThrow('away');
});
