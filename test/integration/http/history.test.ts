import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { createKey } from '../../../src/access/create-key.ts';
import { eventListSchema } from '../../../src/http/features/events/schema.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { type Call, clientOf } from '../../support/http/client.ts';
import { type Events, openEvents } from '../../support/http/events.ts';
import { kindsCounted } from '../../support/kinds-counted.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

let berth: BerthProcess;
let token: string;
let tenant: TestNamespace;
let stranger: TestNamespace;
let call: Call;
let other: Call;

beforeAll(async () => {
  [tenant, stranger] = await Promise.all([testNamespace(), testNamespace()]);
  await kindsCounted(tenant.client);
  berth = await startBerth(inject('cluster').kubeconfig);
  const callOf = async ({ name, client }: TestNamespace): Promise<Call> => {
    const key = await createKey(client, { namespace: name, displayName: 'history' });
    token ??= key.token;
    const made = clientOf(berth.url, key.token);
    await waitFor('the key', async () => (await made('GET', '/offers')).status === 200);
    return made;
  };
  call = await callOf(tenant);
  other = await callOf(stranger);
});
afterAll(async () => {
  await berth[Symbol.asyncDispose]();
  await Promise.all([tenant[Symbol.asyncDispose](), stranger[Symbol.asyncDispose]()]);
});

it('tells what happened to an instance, and goes on telling it when the instance is gone', async () => {
  const ref = { namespace: tenant.name, name: 'told' };
  await tenant.client.create(GPU_INSTANCES, {
    metadata: ref,
    spec: { gpu: { product: 'NVIDIA-A100-SXM4-80GB', count: 1 } },
  } as never);
  const events = async () => eventListSchema.parse((await call('GET', '/instances/told/events')).json);
  const reasons = async (): Promise<string[]> => (await events()).data.map(({ reason }) => reason);
  await waitFor('the instance', async () => (await call('GET', '/instances/told')).status === 200);
  // At once, although the history is written later.
  await waitFor('its start', async () => (await reasons()).includes('Ready'));
  expect(await reasons()).toEqual(expect.arrayContaining(['Accepted', 'Claimed', 'Scheduled', 'Ready']));
  await call('DELETE', '/instances/told');
  await waitFor('its end', async () => (await call('GET', '/instances/told')).status === 404);
  const ended = await waitFor('the whole history', async () => {
    const answer = await call('GET', '/instances/told/events');
    return answer.status === 200 && eventListSchema.parse(answer.json).ended_at !== null && answer;
  });
  const { data } = eventListSchema.parse(ended.json);
  expect(data.map(({ reason }) => reason)).toEqual(expect.arrayContaining(['Claimed', 'Ready', 'Deleting', 'Deleted']));
  expect(data.map(({ at }) => Date.parse(at))).toEqual(data.map(({ at }) => Date.parse(at)).toSorted((a, b) => a - b));
  const theirs = await other('GET', '/instances/told/events');
  expect([theirs.status, theirs.error['code']]).toEqual([404, 'instance_not_found']);
  expect((await call('GET', '/instances/never/events')).status).toBe(404);
});

it('tells it as it happens, and goes on after the last event that a client has', async () => {
  const ref = { namespace: tenant.name, name: 'followed' };
  const url = `${berth.url}/api/v1/instances/followed/events`;
  await tenant.client.create(GPU_INSTANCES, {
    metadata: ref,
    spec: { gpu: { product: 'NVIDIA-A100-SXM4-80GB', count: 1 } },
  } as never);
  const events = await openEvents(url, token);
  const reasonsOf = ({ seen }: Events): unknown[] => seen.map(({ json }) => json['reason']);
  await waitFor('its start', () => reasonsOf(events).includes('Ready'));
  await events.close();
  const claimed = events.seen.find(({ json }) => json['reason'] === 'Claimed');
  const rest = await openEvents(url, token, claimed?.id);
  await call('DELETE', '/instances/followed');
  await rest.ended;
  expect([reasonsOf(rest).slice(-2), rest.seen.at(-1)?.type]).toEqual([['Deleted', 'Deleted'], 'end']);
  const all = [...events.seen.slice(0, events.seen.findIndex((one) => one === claimed) + 1), ...rest.seen];
  expect(new Set(all.map(({ type, id }) => `${type} ${id}`)).size).toBe(all.length);
  expect(reasonsOf({ ...rest, seen: all })).toEqual(
    expect.arrayContaining(['Accepted', 'Claimed', 'Scheduled', 'Ready', 'Deleting', 'Deleted']),
  );
  // The history says the same when it is written, and a stream of it ends at once.
  await waitFor('the whole history', async () => (await call('GET', '/instances/followed/events')).status === 200);
  const late = await openEvents(url, token);
  await late.ended;
  expect(late.seen.at(-1)?.type).toBe('end');
  expect(reasonsOf(late)).toEqual(expect.arrayContaining(['Ready', 'Deleted']));
});
