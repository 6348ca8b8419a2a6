import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest';
import { createKey } from '../../src/access/create-key.ts';
import { type KubeConnection, loadKubeConfig } from '../../src/kube/config/config.ts';
import { SERVICES } from '../../src/kube/types.ts';
import { GPU_INSTANCES } from '../../src/resources/instances/gpu-instance.ts';
import { instanceState, type ReadyReason } from '../../src/resources/instances/instance-state.ts';
import { TOKEN_RECORDS } from '../../src/resources/token-record.ts';
import { USAGE_RECORDS } from '../../src/resources/usage-record.ts';
import { ALERTS_TEXT, hastened } from '../support/alert-rules.ts';
import { type BerthProcess, startBerth } from '../support/berth-process.ts';
import { writeKubeconfig } from '../support/fault-proxy/kubeconfig.ts';
import { type FaultProxy, faultProxy } from '../support/fault-proxy/proxy.ts';
import { type Call, clientOf } from '../support/http/client.ts';
import { addNode, gpuNode } from '../support/http/fleet.ts';
import { kindsCounted } from '../support/kinds-counted.ts';
import { LONG_MS, OnCall } from '../support/on-call.ts';
import { PlayedNode } from '../support/played-node.ts';
import { hasPrometheus, type Prometheus, startPrometheus } from '../support/prometheus.ts';
import { addDeadWebhook, type Refusal, refusePods, refuseRecords } from '../support/refusals.ts';
import type { ScriptedEngine } from '../support/scripted-engine.ts';
import { serveModel } from '../support/serve-model.ts';
import { type TestNamespace, testNamespace } from '../support/test-cluster.ts';
import { waitFor } from '../support/wait-for.ts';

// Each alert is fired by the fault that it is for, and then its runbook is followed. Times in the rules pass faster by
// one factor, and so do the bookmarks of the API server, by which a cache knows that it is fresh.

const FACTOR = 40;
const BOOKMARK_MS = 60_000 / FACTOR;
/** Longer than the 600 seconds of BerthStartsSlow. */
const SLOW_PULL_MS = 720_000 / FACTOR;
const OUT_OF_SERVICE = 'kubectl taint node NODE node.kubernetes.io/out-of-service=nodeshutdown:NoExecute';
const STOP = `kubectl -n TENANT patch gpuinstance NAME --type merge -p '{"spec":{"powerState":"Stopped"}}'`;
const DRAIN = 'kubectl drain NODE --pod-selector=app.kubernetes.io/managed-by=berth --delete-emptydir-data';
const SICK_GPU = 'GPU-7540a9b3-eeb9-1214-1526-f93c9ea826a8';
/** As NVIDIA's device plugin writes it. */
const PLUGIN_LOG = `'nvidia.com/gpu' device marked unhealthy: ${SICK_GPU}\n`;
const { kubeconfig, programs } = inject('cluster');

const quick = (text: string): string => hastened(text, FACTOR);

const product = (of: string): string => `NVIDIA-RUNBOOK-${of.toUpperCase()}`;

let home: TestNamespace;
let tenant: TestNamespace;
/** A tenant for whom no usage record can be written. */
let unbilled: TestNamespace;
let folder: string;
let upstream: KubeConnection;
const proxies: FaultProxy[] = [];
let roles: Record<'controller' | 'api' | 'ssh' | 'other', BerthProcess>;
let hung: FaultProxy;
let nodes: Record<'slow' | 'lost' | 'off' | 'full' | 'sick', PlayedNode>;
const removals: (() => Promise<void>)[] = [];
let engine: ScriptedEngine;
let prometheus: Prometheus;
let onCall: OnCall;
let call: Call;
let noUsage: Refusal | undefined;

/** A role on a way of its own to the API server. */
async function startBehind(role: string): Promise<[BerthProcess, FaultProxy]> {
  const proxy = await faultProxy(upstream);
  proxies.push(proxy);
  proxy.faults.bookmarkMs = BOOKMARK_MS;
  const path = await writeKubeconfig(join(folder, `${role}-${proxies.length}`), proxy.server);
  return [await startBerth(path, role, home.name), proxy];
}

const spareOf = (of: string): string => `${tenant.name}-${of}-spare`;

/** A node with room, which kwok plays. */
async function addSpare(of: string): Promise<void> {
  removals.push(await addNode(tenant.client, gpuNode(spareOf(of), product(of), 64)));
}

const targets = () => Object.fromEntries(Object.entries(roles).map(([name, { metricsUrl }]) => [name, metricsUrl]));

async function startModel(): Promise<void> {
  engine = await serveModel(home, { models: ['tiny'] });
  const amounts = { 'berth.dev/price-input': '1.00', 'berth.dev/price-output': '1.00' };
  const annotations = { ...amounts, 'berth.dev/price-currency': 'EUR' };
  const service = { namespace: home.name, name: 'engine' };
  await home.client.patch(SERVICES, service, { metadata: { annotations } }, { type: 'merge' });
}

beforeAll(async () => {
  [home, tenant, unbilled] = await Promise.all([testNamespace(), testNamespace(), testNamespace()]);
  const { client, name } = tenant;
  await kindsCounted(client);
  folder = await mkdtemp(join(tmpdir(), 'berth-runbooks-'));
  upstream = await loadKubeConfig({ kubeconfig });
  await startModel();
  const play = (of: string, pullMs = 0): Promise<PlayedNode> =>
    PlayedNode.start(client, { name: `${name}-${of}`, product: product(of), gpus: 8, pullMs });
  const [slow, lost, off] = await Promise.all([play('slow', SLOW_PULL_MS), play('lost'), play('off')]);
  const [full, sick] = await Promise.all([play('full'), play('sick')]);
  nodes = { slow, lost, off, full, sick };
  await addSpare('quick');
  const [[controller], [api], [ssh], [other, way]] = await Promise.all([
    startBehind('controller'),
    startBehind('api'),
    startBehind('ssh'),
    startBehind('ssh'),
  ]);
  roles = { controller, api, ssh, other };
  hung = way;
  call = clientOf(api.url, (await createKey(client, { namespace: name })).token);
  await waitFor('the price', async () => (await call('GET', '/models')).text.includes('price_per_million_tokens'));
});

afterAll(async () => {
  await noUsage?.remove();
  // Pods end where a kubelet ends them.
  for (const node of Object.values(nodes)) node.answer();
  for (const { client, name: namespace } of [tenant, unbilled]) {
    for (const { metadata } of (await client.list(GPU_INSTANCES, { namespace })).items) {
      await client.delete(GPU_INSTANCES, metadata);
    }
    await waitFor(
      'the instances to go',
      async () => (await client.list(GPU_INSTANCES, { namespace })).items.length === 0,
      60_000,
    );
  }
  for (const remove of removals) await remove();
  const parts: AsyncDisposable[] = [...Object.values(nodes), ...Object.values(roles), ...proxies];
  for (const part of parts) await part[Symbol.asyncDispose]();
  await engine.close();
  for (const namespace of [home, tenant, unbilled]) await namespace[Symbol.asyncDispose]();
  await upstream.close();
  await rm(folder, { recursive: true });
}, LONG_MS);

async function rent(of: string, name: string, count = 1, { client, name: namespace } = tenant): Promise<void> {
  const metadata = { name, namespace };
  await client.create(GPU_INSTANCES, { metadata, spec: { gpu: { product: product(of), count } } } as never);
}

async function nodeOf(name: string): Promise<string | undefined> {
  const { status } = await tenant.client.get(GPU_INSTANCES, { namespace: tenant.name, name });
  return status?.claim?.node;
}

function reached(name: string, reason: ReadyReason, { client, name: namespace } = tenant): Promise<unknown> {
  return waitFor(
    `${name} to be ${reason}`,
    async () => instanceState(await client.get(GPU_INSTANCES, { namespace, name })).reason === reason,
    LONG_MS,
  );
}

describe.skipIf(!(await hasPrometheus()))('with a Prometheus beside the roles', { timeout: LONG_MS }, () => {
  beforeAll(async () => {
    prometheus = await startPrometheus(targets(), quick(ALERTS_TEXT));
    const logs: Record<string, () => string> = {
      controller: () => roles.controller.log(),
      api: () => roles.api.log(),
      'nvidia-device-plugin-daemonset': () => PLUGIN_LOG,
    };
    const logOf = (label: string): string => logs[label]?.() ?? '';
    onCall = new OnCall(prometheus, { kubeconfig, programs, namespace: home.name, logOf, faster: quick, env: {} });
  });
  afterAll(() => prometheus[Symbol.asyncDispose]());

  it('no alert fires while instances run', async () => {
    await waitFor('all targets', async () => (await prometheus.query('sum(up) == 4')).length > 0);
    await rent('quick', 'deleted', 1, unbilled);
    for (const name of ['kept', 'going']) await rent('lost', name);
    await rent('off', 'moved');
    await rent('full', 'holds', 8);
    await rent('sick', 'ill');
    await Promise.all([reached('deleted', 'Running', unbilled), reached('kept', 'Running')]);
    for (const name of ['going', 'moved', 'holds', 'ill']) await reached(name, 'Running');
    expect(await onCall.firing()).toEqual([]);
  });

  it('faults come whose alerts take long: nodes that fall silent, a record that is refused, an image that comes slowly', async () => {
    const { client, name: namespace } = unbilled;
    onCall.expect('BerthNodeLost', 'BerthLedgerLag', 'BerthStartsSlow', 'BerthWaitingLong');
    await rent('full', 'waits', 8);
    await Promise.all([nodes.lost.silence(), nodes.off.silence()]);
    noUsage = await refuseRecords(unbilled, 'usagerecords');
    await client.delete(GPU_INSTANCES, { namespace, name: 'deleted' });
    await client.delete(GPU_INSTANCES, { namespace: tenant.name, name: 'going' });
    const slow = [1, 2, 3, 4, 5, 6].map((index) => `slow-${index}`);
    for (const name of slow) await rent('slow', name);
    for (const name of slow) await reached(name, 'PullingImage');
  });

  it('BerthStartsSlow: an image comes slowly', async () => {
    await onCall.fires('BerthStartsSlow');
    await rent('slow', 'slow-7');
    await onCall.shows('BerthStartsSlow', /slow-7 +PullingImage/, { TENANT: tenant.name });
    const stages = await prometheus.query('ALERTS{alertname="BerthStartsSlow",alertstate="firing"}');
    expect(stages.map(({ metric }) => metric['stage'])).toEqual(['started']);
    nodes.slow.hasImages();
    await reached('slow-7', 'Running');
  });

  it('BerthGPUsUnhealthy: a device plugin takes a GPU out of service', async () => {
    const { name: NODE } = nodes.sick;
    await nodes.sick.failGpu(SICK_GPU);
    await onCall.fires('BerthGPUsUnhealthy');
    const said = await onCall.shows('BerthGPUsUnhealthy', new RegExp(`marked unhealthy: ${SICK_GPU}`));
    expect(said).toMatch(new RegExp(`${NODE} +8 +7\n`));
    expect(said).toMatch(new RegExp(`${tenant.name} +ill +${SICK_GPU}\n`));
    await addSpare('sick');
    for (const command of ['kubectl cordon NODE', DRAIN]) await onCall.run('BerthGPUsUnhealthy', command, { NODE });
    await reached('ill', 'Running');
    expect(await nodeOf('ill')).toBe(spareOf('sick'));
    await nodes.sick.mendGpus();
    await onCall.run('BerthGPUsUnhealthy', 'kubectl uncordon NODE', { NODE });
    await onCall.ends('BerthGPUsUnhealthy');
  });

  it('BerthStartsFailing: a policy of the cluster refuses the pods', async () => {
    await using refusal = await refusePods(tenant);
    const refused = [1, 2, 3, 4, 5].map((index) => `refused-${index}`);
    for (const name of refused) await rent('quick', name);
    await onCall.fires('BerthStartsFailing');
    // The message names the policy.
    await onCall.shows('BerthStartsFailing', new RegExp(`PodRejected.*${refusal.name}`));
    await refusal.remove();
    for (const name of refused) await reached(name, 'Running');
  });

  it('BerthLogLinesDropped: nobody reads the log', async () => {
    const { child, url } = roles.api;
    // Each line has the path.
    const ask = async (word: string): Promise<unknown> =>
      (await fetch(`${url}/api/v1/${word.padEnd(500, '-')}`)).arrayBuffer();
    onTestFinished(() => void child.stdout?.resume());
    child.stdout?.pause();
    const askOften = async (): Promise<void> => {
      for (let round = 0; round < 20; round += 1) await Promise.all(Array.from({ length: 50 }, () => ask('unread')));
    };
    await onCall.fires('BerthLogLinesDropped', askOften);
    await onCall.shows('BerthLogLinesDropped', /DiskPressure +False/, { NODE: spareOf('quick') });
    child.stdout?.resume();
    await waitFor('new lines', async () => {
      await ask('read-again');
      return roles.api.log().includes('read-again');
    });
  });

  it('BerthTokenLedgerLag: a quota refuses the token records', async () => {
    await using refusal = await refuseRecords(tenant, 'tokenrecords');
    const body = { model: 'tiny', messages: [{ role: 'user', content: 'Hello' }] };
    expect((await call('POST', '/chat/completions', body)).status).toBe(200);
    await onCall.fires('BerthTokenLedgerLag');
    await onCall.shows('BerthTokenLedgerLag', new RegExp(`exceeded quota: ${refusal.name}`));
    await refusal.remove();
    await onCall.ends('BerthTokenLedgerLag');
    const { items } = await tenant.client.list(TOKEN_RECORDS, { namespace: tenant.name });
    expect(items.map(({ spec }) => spec.calls)).toEqual([1]);
  });

  it('BerthHTTPErrors: the API server fails where an admission webhook does not answer', async () => {
    await using webhook = await addDeadWebhook(tenant);
    const post = (): Promise<{ status: number }> =>
      call('POST', '/instances', { gpu: { name: product('quick'), count: 1 } });
    await waitFor('the webhook to be asked', async () => (await post()).status === 503);
    await onCall.fires('BerthHTTPErrors', post);
    const said = await onCall.shows('BerthHTTPErrors', new RegExp(webhook.name));
    expect(said).toContain('"metric":{"code":"503","route":"/instances"}');
    // Its runbook leads to that of BerthAPIServerErrors: admission webhooks that do not answer.
    await webhook.remove();
    await waitFor('an instance', async () => (await post()).status === 201);
    await onCall.ends('BerthHTTPErrors', () => call('GET', '/instances'));
  });

  it('BerthCachesStale: nothing more comes over the connections of one replica', async () => {
    hung.faults.silent = () => true;
    await onCall.fires('BerthCachesStale');
    const said = await onCall.shows('BerthCachesStale', /readyz check passed/);
    const host = new URL(roles.other.metricsUrl).host;
    const replicas = [...said.matchAll(/"instance":"([^"]+)"/g)].map(([, instance]) => instance);
    expect(new Set(replicas)).toEqual(new Set([host]));
    // One replica alone: its pod is deleted, and the Deployment makes another.
    const exited = once(roles.other.child, 'exit');
    roles.other.child.kill('SIGTERM');
    const [[fresh]] = await Promise.all([startBehind('ssh'), exited]);
    roles.other = fresh;
    await prometheus.scrape(targets());
    await waitFor('all targets', async () => (await prometheus.query('sum(up) == 4')).length > 0);
    await onCall.ends('BerthCachesStale');
  });

  it('BerthLedgerLag: a record is refused, and a pod does not end', async () => {
    await onCall.fires('BerthLedgerLag');
    const said = await onCall.shows('BerthLedgerLag', new RegExp(`exceeded quota: ${noUsage?.name}`));
    for (const name of ['deleted', 'going']) expect(said).toMatch(new RegExp(`${name} +Deleting`));
    // What refuses it goes. The pod is on a node that does not answer: BerthNodeLost is next.
    await noUsage?.remove();
  });

  it('BerthWaitingLong: the GPUs that an instance needs are those of another', async () => {
    await onCall.fires('BerthWaitingLong');
    await onCall.shows('BerthWaitingLong', /waits +WaitingForCapacity/);
    await onCall.run('BerthWaitingLong', STOP, { TENANT: tenant.name, NAME: 'holds' });
    await reached('waits', 'Running');
    await onCall.ends('BerthWaitingLong');
  });

  it('BerthNodeLost: a node comes back, and another is off for good', async () => {
    await onCall.fires('BerthNodeLost');
    const said = await onCall.shows('BerthNodeLost', /kept +NodeLost/);
    expect(said).toMatch(/moved +NodeLost/);
    for (const { name } of [nodes.lost, nodes.off]) expect(said).toMatch(new RegExp(`${name} +NotReady`));
    nodes.lost.answer();
    await reached('kept', 'Running');
    await addSpare('off');
    await onCall.run('BerthNodeLost', OUT_OF_SERVICE, { NODE: nodes.off.name });
    await reached('moved', 'Running');
    expect(await nodeOf('moved')).toBe(spareOf('off'));
    await onCall.ends('BerthNodeLost');
  });

  it('and all are over in the end, with every bill written', async () => {
    await onCall.allEnd();
    const billed = await Promise.all(
      [unbilled, tenant].map(async ({ client, name: namespace }) => {
        const { items } = await client.list(USAGE_RECORDS, { namespace });
        return items.map(({ spec }) => spec.instance);
      }),
    );
    expect(billed).toEqual([['deleted'], ['going']]);
  });
});
