import { afterEach, expect, it } from 'vitest';
import { eventListSchema } from '../../../src/http/features/events/schema.ts';
import { NotFoundError } from '../../../src/kube/errors.ts';
import { HISTORY_OF, type InstanceHistory } from '../../../src/resources/instance-history.ts';
import { type LoneApi, startLoneApi } from '../../support/http/lone-api.ts';
import { gpuInstance } from '../../support/inventory-world.ts';

const AT = '2026-01-01T00:00:00Z';

let api: LoneApi | undefined;
afterEach(() => api?.close());

function history(uid: string, created: string, endedAt?: string): InstanceHistory {
  const entry = { at: created, type: 'Normal', reason: `Of${uid}`, message: '', count: 1, start: 1 } as const;
  const labels = { [HISTORY_OF]: 'one' };
  return {
    metadata: { namespace: 'a', name: `h-${uid}`, labels, creationTimestamp: created },
    spec: {
      instance: 'one',
      instanceUid: uid,
      dropped: 0,
      entries: [entry],
      ...(endedAt !== undefined && { endedAt }),
    },
  };
}

async function serve(stored: readonly InstanceHistory[], live: boolean) {
  const ready = { type: 'Ready', status: 'False', reason: 'CrashLoop', message: 'no', lastTransitionTime: AT } as const;
  const instance = gpuInstance('one', {}, { incarnation: 2, conditions: [ready] });
  const asked: unknown[] = [];
  api = await startLoneApi({
    tenants: ['a', 'b'],
    instances: live ? [{ ...instance, metadata: { ...instance.metadata, namespace: 'a' } }] : [],
    client: {
      get: () => Promise.reject(new NotFoundError({ message: 'gone', status: 404, reason: 'NotFound' })),
      list: (_type, options) => {
        asked.push([options?.namespace, options?.labelSelector, options?.limit]);
        const items = stored.filter(({ metadata }) => metadata.namespace === options?.namespace);
        return Promise.resolve({ items: items as never[], resourceVersion: '1' });
      },
    },
  });
  const { port } = api.address;
  const get = async (tenant: string, id = 'one') => {
    const headers = { authorization: `Bearer ${tenant}` };
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/instances/${id}/events`, { headers });
    return { status: answer.status, json: await answer.json() };
  };
  return { asked, get };
}

it('has what the instance says since the last write, after what is stored of it', async () => {
  const { asked, get } = await serve([history('other', AT, AT), history('uid-one', AT)], true);
  const { data, ended_at: endedAt } = eventListSchema.parse((await get('a')).json);
  expect(data.map(({ reason, type, start }) => [reason, type, start])).toEqual([
    ['Ofuid-one', 'normal', 1],
    ['CrashLoop', 'warning', 2],
  ]);
  expect(endedAt).toBeNull();
  // A tenant may have a thousand of one name, and a page is parsed in one go.
  expect(asked).toEqual([['a', `${HISTORY_OF}=one`, 10]]);
});

it('is that of the newest instance of the name, once it is gone, and of the tenant alone', async () => {
  const { asked, get } = await serve(
    [history('old', '2026-01-01T00:00:00Z', AT), history('new', '2026-01-02T00:00:00Z', AT)],
    false,
  );
  const list = eventListSchema.parse((await get('a')).json);
  expect([list.instance_id, list.ended_at, list.data.map(({ reason }) => reason)]).toEqual(['one', AT, ['Ofnew']]);
  expect(await get('b')).toMatchObject({ status: 404, json: { error: { code: 'instance_not_found' } } });
  // What is no name is no selector either.
  expect((await get('a', 'one,x!=y')).status).toBe(404);
  expect(asked).toHaveLength(2);
});

it('gives back what a followed history took when its client goes', async () => {
  await serve([history('uid-one', AT)], true);
  const url = `http://127.0.0.1:${api?.address.port}/api/v1/instances/one/events`;
  const headers = { authorization: 'Bearer a', accept: 'text/event-stream' };
  // More than a replica follows at once, one after the other.
  for (let index = 0; index < 150; index += 1) {
    const left = new AbortController();
    const answer = await fetch(url, { headers, signal: left.signal });
    expect([index, answer.status]).toEqual([index, 200]);
    left.abort();
  }
});

it('follows as many histories of one key as it may have streams', async () => {
  await serve([history('uid-one', AT)], true);
  const url = `http://127.0.0.1:${api?.address.port}/api/v1/instances/one/events`;
  const headers = { authorization: 'Bearer a', accept: 'text/event-stream' };
  const left = new AbortController();
  // Kept, because fetch ends the stream of an answer that was collected as garbage.
  const answers: Response[] = [];
  for (let index = 0; index < 33; index += 1) answers.push(await fetch(url, { headers, signal: left.signal }));
  const statuses = answers.map(({ status }) => status);
  expect([new Set(statuses.slice(0, 32)), statuses.at(-1)]).toEqual([new Set([200]), 429]);
  left.abort();
});
