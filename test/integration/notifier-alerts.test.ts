import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { stringify } from 'yaml';
import { createKey } from '../../src/access/create-key.ts';
import { GPU_INSTANCES } from '../../src/resources/instances/gpu-instance.ts';
import { ALERTS, hastened } from '../support/alert-rules.ts';
import { type BerthProcess, startBerth } from '../support/berth-process.ts';
import { type Call, clientOf } from '../support/http/client.ts';
import { kindsCounted } from '../support/kinds-counted.ts';
import { LONG_MS, OnCall } from '../support/on-call.ts';
import { hasPrometheus, type Prometheus, startPrometheus } from '../support/prometheus.ts';
import { type TestNamespace, testNamespace } from '../support/test-cluster.ts';
import { waitFor } from '../support/wait-for.ts';

/** Times in the rules pass faster by it: five minutes of lag are three seconds. */
const FACTOR = 100;
/** How long a receiver takes for an event that does the work before it answers. */
const WORK_MS = 4_000;
const OWN = new Set(['BerthNotifierDown', 'BerthWebhookLag']);
const { kubeconfig, programs } = inject('cluster');

const quick = (text: string): string => hastened(text, FACTOR);

let tenant: TestNamespace;
let berth: BerthProcess;
let notifier: BerthProcess;
let receiver: Server;
let workMs = WORK_MS;
let prometheus: Prometheus;
let onCall: OnCall;
let call: Call;

function startNotifier(): Promise<BerthProcess> {
  const env = { BERTH_WEBHOOK_NETWORKS: '127.0.0.0/8' };
  return startBerth(kubeconfig, 'notifier', 'berth-system', { env });
}

const targets = () => ({ all: berth.metricsUrl, notifier: notifier.metricsUrl });

beforeAll(async () => {
  tenant = await testNamespace();
  await kindsCounted(tenant.client);
  receiver = createServer((request, response) => {
    request.resume().once('end', () => void setTimeout(() => response.writeHead(204).end(), workMs));
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  berth = await startBerth(kubeconfig, 'all', 'berth-system', { env: { BERTH_WEBHOOKS: 'true' } });
  notifier = await startNotifier();
  const { token } = await createKey(tenant.client, { namespace: tenant.name, displayName: 'alerts' });
  call = clientOf(berth.url, token);
  await waitFor('the key', async () => (await call('GET', '/offers')).status === 200);
});
afterAll(async () => {
  for (const one of [notifier, berth]) await one[Symbol.asyncDispose]();
  receiver.closeAllConnections();
  receiver.close();
  await tenant[Symbol.asyncDispose]();
});

describe.skipIf(!(await hasPrometheus()))('with a Prometheus beside the roles', { timeout: 2 * LONG_MS }, () => {
  beforeAll(async () => {
    const rules = ALERTS.filter(({ alert }) => OWN.has(alert));
    prometheus = await startPrometheus(targets(), quick(stringify({ groups: [{ name: 'notifier', rules }] })));
    const logOf = (component: string): string => (component === 'notifier' ? notifier.log() : '');
    const options = { kubeconfig, programs, namespace: 'berth-system', logOf, faster: quick, env: {} };
    onCall = new OnCall(prometheus, options);
    const leads = 'leader_election_master_status{name="berth-notifier"} == 1';
    await waitFor('a leader', async () => (await prometheus.query(leads)).length === 1, LONG_MS);
  });
  afterAll(() => prometheus[Symbol.asyncDispose]());

  it('BerthNotifierDown: the notifier is gone, and another comes', async () => {
    // None led at first.
    onCall.expect('BerthNotifierDown');
    await onCall.ends('BerthNotifierDown');
    notifier.child.kill('SIGKILL');
    await onCall.fires('BerthNotifierDown');
    await onCall.shows('BerthNotifierDown', /name: berth-notifier[^]*"Leading"/);
    notifier = await startNotifier();
    await prometheus.scrape(targets());
    await onCall.ends('BerthNotifierDown');
  });

  it('BerthWebhookLag: a receiver works before it answers, and then answers at once', async () => {
    const { client, name: namespace } = tenant;
    const { port } = receiver.address() as AddressInfo;
    const made = await call('POST', '/webhooks', { url: `http://127.0.0.1:${port}/hunter2` });
    expect(made.status, made.text).toBe(201);
    const gpu = { product: 'NVIDIA-A100-SXM4-80GB', count: 1 };
    for (const name of ['first', 'second', 'third']) {
      await client.create(GPU_INSTANCES, { metadata: { namespace, name }, spec: { gpu } } as never);
    }
    await onCall.fires('BerthWebhookLag');
    const said = await onCall.shows(
      'BerthWebhookLag',
      new RegExp(`"key":"${namespace}/${made.id}".*A webhook is behind`),
    );
    expect(said).toMatch(new RegExp(`${made.id} +127\\.0\\.0\\.1:${port} +Delivered`));
    expect(said).toContain('"outcome":"delivered"');
    expect(said + notifier.log()).not.toContain('hunter2');
    workMs = 0;
    await onCall.ends('BerthWebhookLag');

    await onCall.run('BerthWebhookLag', 'kubectl -n TENANT delete webhook NAME', { TENANT: namespace, NAME: made.id });
    await waitFor('its end', async () => (await call('GET', `/webhooks/${made.id}`)).status === 404);
  });
});
