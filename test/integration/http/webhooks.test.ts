import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook as Verifier } from 'standardwebhooks';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { createKey } from '../../../src/access/create-key.ts';
import type { Scope } from '../../../src/resources/api-key.ts';
import { examplesOf } from '../../support/http/examples.ts';
import { eventListSchema } from '../../../src/http/features/events/schema.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { installCli } from '../../support/berth-cli.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { type Call, clientOf } from '../../support/http/client.ts';
import { kindsCounted } from '../../support/kinds-counted.ts';
import { bodyOf } from '../../support/local-server.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

interface Received {
  id: string;
  type: string;
  data: { instance_id: string; instance_name: string; reason: string };
}

const NOTIFIER_ENV = { BERTH_WEBHOOK_NETWORKS: '127.0.0.0/8' };

let berth: BerthProcess;
let tenant: TestNamespace;
let stranger: TestNamespace;
let call: Call;
let other: Call;
let receiver: Server;
let url: string;
/** Verifies with the official library; set when the secret is known. */
let verifier: Verifier;
const received: Received[] = [];
/** Answers an event, after it was verified. */
let answer: (event: Received, response: ServerResponse) => void;
const notifiers: BerthProcess[] = [];

async function startNotifier(): Promise<BerthProcess> {
  const started = await startBerth(inject('cluster').kubeconfig, 'notifier', 'berth-system', { env: NOTIFIER_ENV });
  notifiers.push(started);
  return started;
}

beforeAll(async () => {
  const { kubeconfig } = inject('cluster');
  [tenant, stranger] = await Promise.all([testNamespace(), testNamespace()]);
  await kindsCounted(tenant.client);
  receiver = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      const headers = request.headers as Record<string, string>;
      const event = verifier.verify(body, headers) as Omit<Received, 'id'>;
      const whole = { id: headers['webhook-id'] ?? '', ...event };
      received.push(whole);
      return answer(whole, response);
    });
  }).listen(0, '127.0.0.1');
  berth = await startBerth(kubeconfig, 'all', 'berth-system', { env: { BERTH_WEBHOOKS: 'true' } });
  const callOf = async ({ name, client }: TestNamespace): Promise<Call> => {
    const { token } = await createKey(client, { namespace: name, displayName: 'webhooks' });
    const made = clientOf(berth.url, token);
    await waitFor('the key', async () => (await made('GET', '/offers')).status === 200);
    return made;
  };
  call = await callOf(tenant);
  other = await callOf(stranger);
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
});
afterAll(async () => {
  await Promise.all([berth, ...notifiers].map((one) => one[Symbol.asyncDispose]()));
  receiver.closeAllConnections();
  receiver.close();
  await Promise.all([tenant[Symbol.asyncDispose](), stranger[Symbol.asyncDispose]()]);
});

it('tells all events of an instance in order, also when the notifier is killed in between', async () => {
  const first = await startNotifier();
  const made = await call('POST', '/webhooks', { url, name: 'mine' });
  expect(made.status, made.text).toBe(201);
  const { id, secret } = made.json as { id: string; secret: string };
  expect(made.headers.get('location')).toBe(`/api/v1/webhooks/${id}`);
  verifier = new Verifier(secret);
  const second = await startNotifier();
  await waitFor('a leader', () => first.log().includes('"Leading"'));

  // The third event is never answered, so that the kill meets a delivery that is under way.
  let isHeld = false;
  answer = (_event, response) => {
    if (received.length === 3) isHeld = true;
    else response.writeHead(204).end();
  };
  const spec = { displayName: 'seven', gpu: { product: 'NVIDIA-A100-SXM4-80GB', count: 1 } };
  await tenant.client.create(GPU_INSTANCES, { metadata: { namespace: tenant.name, name: 'told' }, spec } as never);
  await waitFor('the third event', () => isHeld, 60_000);
  first.child.kill('SIGKILL');
  await waitFor('the other notifier', () => second.log().includes('"Leading"'));

  const reasons = (): string[] => [...new Map(received.map((one) => [one.id, one.data.reason])).values()];
  await waitFor('its start', () => reasons().includes('Ready'), 60_000);
  const held = received.filter((one) => one.id === received[2]?.id);
  expect(held.length).toBeGreaterThanOrEqual(2);
  // What was delivered in the second before the kill may come again, in the same order.
  expect(new Set(held.map((one) => JSON.stringify(one))).size).toBe(1);

  expect((await call('DELETE', '/instances/told')).status).toBe(200);
  await waitFor('its end', () => reasons().includes('Deleted'), 60_000);
  const events = eventListSchema.parse((await call('GET', '/instances/told/events')).json);
  expect(reasons()).toEqual(events.data.map(({ reason }) => reason));
  const types = new Set(received.map((one) => `${one.type} ${one.data.instance_id} ${one.data.instance_name}`));
  expect(types).toContain('instance.ready told seven');

  const seen = await waitFor('the status', async () => {
    const read = await call('GET', `/webhooks/${id}`);
    return read.json['last_delivered_at'] !== null && read;
  });
  expect(seen.json).toMatchObject({ id, url, dropped: 0, failed_since: null, delivering: { status: true } });
  expect(seen.json).not.toHaveProperty('secret');
  expect(second.log()).not.toContain(secret);

  // Nothing of it is another tenant's.
  expect((await other('GET', '/webhooks')).data).toEqual([]);
  for (const [method, path] of [
    ['GET', `/webhooks/${id}`],
    ['POST', `/webhooks/${id}/secret`],
    ['DELETE', `/webhooks/${id}`],
  ] as const) {
    const refused = await other(method, path);
    expect([refused.status, refused.error['code']]).toEqual([404, 'webhook_not_found']);
  }

  const rotated = await call('POST', `/webhooks/${id}/secret`);
  expect([rotated.status, rotated.json['secret_version']]).toEqual([200, 2]);
  expect(rotated.json['secret']).not.toBe(secret);
  expect((await call('DELETE', `/webhooks/${id}`)).status).toBe(200);
});

it('refuses more webhooks than the ceiling, and what is no URL', async () => {
  const urls = Array.from({ length: 11 }, (_, index) => `https://hooks.example.com/${index}`);
  const statuses: number[] = [];
  for (const one of urls) statuses.push((await other('POST', '/webhooks', { url: one })).status);
  expect(statuses).toEqual([...Array.from({ length: 10 }, () => 201), 403]);
  for (const [, { value }] of examplesOf('createWebhook')) {
    const answer = await call('POST', '/webhooks', value);
    expect(answer.status, answer.text).toBe(201);
  }
  const wrong = await call('POST', '/webhooks', { url: 'https://user:password@example.com/' });
  expect([wrong.status, wrong.error['code']]).toEqual([422, 'validation_failed']);
});

it('are made, shown and ended with berth, and a key that may only read sees no more than the host', async () => {
  await using cli = await installCli(berth.url);
  await using renter = await testNamespace();
  const keyWith = async (...scopes: Scope[]): Promise<string> => {
    const { token } = await createKey(renter.client, { namespace: renter.name, displayName: 'berth', scopes });
    const tried = clientOf(berth.url, token);
    await waitFor('the key', async () => (await tried('GET', '/offers')).status === 200);
    return token;
  };
  const asKey = (token: string) => Object.assign(cli.env, { BERTH_URL: berth.url, BERTH_API_KEY: token });
  const run = async (...words: string[]): Promise<string> => {
    const { code, stdout, stderr } = await cli.run(['webhooks', ...words]);
    expect([code, stderr.includes('hunter2')], stderr).toEqual([0, false]);
    return stdout;
  };
  asKey(await keyWith('compute:read', 'compute:write'));
  const target = 'https://hooks.example.com/hunter2';
  const secret = await run('add', target, '--event', 'instance.ready', '--name', 'bot');
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]+=*\n$/);
  const rows = await waitFor('the list', async () => {
    const listed = await run();
    return listed.includes('bot') && listed;
  });
  expect(rows).toMatch(/^w-\S+ +bot +hooks\.example\.com /m);
  expect(rows).not.toContain('hunter2');
  const [id = ''] = /^w-\S+/m.exec(rows) ?? [];
  expect(await run('show', id)).toMatch(/^url +https:\/\/hooks\.example\.com\/hunter2\nevents +instance\.ready$/m);
  const another = await run('rotate', id);
  expect(another).toMatch(/^whsec_/);
  expect(another).not.toBe(secret);

  const all = { BERTH_API_KEY: cli.env['BERTH_API_KEY'] };
  asKey(await keyWith('compute:read'));
  expect(await run('show', id)).toMatch(/^url +https:\/\/hooks\.example\.com\/\*\*\*$/m);
  const refused = await cli.run(['webhooks', 'rotate', id]);
  expect([refused.code, refused.stdout]).toEqual([3, '']);

  Object.assign(cli.env, all);
  await run('rm', id);
  await waitFor('the end of it', async () => (await cli.run(['webhooks', 'show', id])).code === 4);
  const gone = await cli.run(['webhooks', 'rm', id]);
  expect([gone.code, gone.stderr]).toEqual([4, expect.stringContaining('berth webhooks lists your webhooks.')]);
});
