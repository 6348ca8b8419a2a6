import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { parse } from 'yaml';
import { INFERENCE_POOLS } from '../../../src/kube/inference-pools.ts';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  type CustomResourceDefinition,
  ENDPOINT_SLICES,
  NAMESPACES,
  PODS,
  SERVICES,
} from '../../../src/kube/types.ts';
import { ROOT } from '../../../tools/lib/paths.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import type { Cluster } from '../../support/http/api.ts';
import { openCluster } from '../../support/http/open.ts';
import { RoleAccount, writeKubeconfigOf } from '../../support/role-account.ts';
import { type ScriptedEngine, startEngine } from '../../support/scripted-engine.ts';
import { waitFor } from '../../support/wait-for.ts';
import { openWay, ownAddress } from '../../support/way.ts';

const LABELS = { 'berth.dev/model-server': 'true' };
const CRD = parse(readFileSync(join(ROOT, 'test/support/inference-pools.yaml'), 'utf8')) as CustomResourceDefinition;

describe('InferencePools, with the rights of the api role alone', () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-pools-'));
  let cluster: Cluster;
  let tenant: string;
  let other: string;
  /** It may read no InferencePools at first. */
  let late: BerthProcess;
  let api: BerthProcess;
  let rights: RoleAccount;
  let key: string;
  let otherKey: string;
  let port: number;
  const engines: ScriptedEngine[] = [];
  const ways: Server[] = [];
  const accounts: RoleAccount[] = [];

  async function roleProcess(name: string): Promise<[BerthProcess, RoleAccount]> {
    const own = await cluster.namespace(name);
    const account = await RoleAccount.make({ client: cluster.client, name: own }, 'api');
    accounts.push(account);
    if (name === 'late') await account.lose('list', 'inferencepools');
    const config = await writeKubeconfigOf(join(folder, name), inject('cluster').kubeconfig, await account.token());
    return [await startBerth(config, 'api', own), account];
  }

  /** A pod of a pool, which nothing runs: the test says what a kubelet would. */
  async function pod(namespace: string, name: string, ip: string): Promise<void> {
    const ref = { namespace, name };
    const spec = { schedulingGates: [{ name: 'test/never' }], containers: [{ name: 'main', image: 'none' }] };
    await cluster.client.create(PODS, { metadata: { ...ref, labels: { app: 'vllm' } }, spec });
    const status = { phase: 'Running', podIP: ip, podIPs: [{ ip }], conditions: [{ type: 'Ready', status: 'True' }] };
    await cluster.client.patch(PODS, ref, { status }, { type: 'merge', subresource: 'status' });
  }

  async function engine(model: string, from: number, address: string): Promise<number> {
    const started = await startEngine({ engine: 'vllm', models: [model] });
    engines.push(started);
    const way = await openWay(started.port, from, address);
    ways.push(way);
    return (way.address() as AddressInfo).port;
  }

  /** A Service of the first pod, which the pool selects, too. */
  async function service(): Promise<void> {
    const metadata = { namespace: tenant, name: 'vllm', labels: LABELS };
    await cluster.client.create(SERVICES, { metadata, spec: { ports: [{ name: 'http', port: 80 }] } });
    const targetRef = { kind: 'Pod', name: 'a', namespace: tenant };
    await cluster.client.create(ENDPOINT_SLICES, {
      metadata: { ...metadata, labels: { ...LABELS, 'kubernetes.io/service-name': 'vllm' } },
      addressType: 'IPv4',
      ports: [{ name: 'http', port }],
      endpoints: [{ addresses: [ownAddress()], conditions: { ready: true }, targetRef }],
    });
  }

  async function pool(namespace: string, number: number): Promise<void> {
    const endpointPickerRef = { name: 'picker', port: { number: 9002 } };
    const metadata = { namespace, name: 'vllm', labels: LABELS, annotations: { 'berth.dev/shared': 'true' } };
    const selector = { matchLabels: { app: 'vllm' } };
    const spec = { selector, targetPorts: [{ number }], endpointPickerRef };
    await cluster.client.create(INFERENCE_POOLS, { metadata, spec });
  }

  async function readyAt({ url }: BerthProcess, model: string, by = key): Promise<number | undefined> {
    const headers = { authorization: `Bearer ${by}` };
    const response = await fetch(`${url}/api/v1/models/${model}`, { headers });
    return ((await response.json()) as { ready_endpoints?: number }).ready_endpoints;
  }

  async function isReady(model: string, count: number | undefined, by = key): Promise<void> {
    for (const one of [api, late])
      await waitFor(`${count} of ${model}`, async () => (await readyAt(one, model, by)) === count, 120_000);
  }

  /** Begins a stream, has something happen in its middle, and reads it to its end. */
  async function streamAcross(happening: (served: number) => Promise<unknown>): Promise<string> {
    for (const one of engines) one.behave({ kind: 'answer', reply: { text: 'Hello there' }, gapMs: 2000 });
    const before = engines.map(({ received }) => received.length);
    const response = await fetch(`${api.url}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'tiny', stream: true, messages: [{ role: 'user', content: 'Hello' }] }),
    });
    expect(response.status).toBe(200);
    await happening(engines.findIndex(({ received }, at) => received.length > (before[at] ?? 0)));
    return response.text();
  }

  const whole = /"Hello ".*"there".*"finish_reason":"stop".*\[DONE\]\s*$/s;

  beforeAll(async () => {
    cluster = await openCluster();
    tenant = await cluster.namespace('tenant');
    other = await cluster.namespace('other');
    [api] = await roleProcess('api');
    [late, rights] = await roleProcess('late');
    const replicas: [string, string] = [api.url, late.url];
    key = await cluster.key(tenant, { scopes: ['models'] }, { url: api.url, replicas });
    otherKey = await cluster.key(other, { scopes: ['models'] }, { url: api.url, replicas });
    port = await engine('tiny', 0, ownAddress());
    await engine('tiny', port, '127.0.0.3');
    await pod(tenant, 'a', ownAddress());
    await pod(tenant, 'b', '127.0.0.3');
  }, 300_000);

  afterAll(async () => {
    for (const one of [api, late, ...accounts, cluster]) await one[Symbol.asyncDispose]();
    for (const way of ways) way.close();
    for (const one of engines) await one.close();
    rmSync(folder, { recursive: true });
  });

  it('are none where the cluster has no such kind, or Berth may not read it', async () => {
    await service();
    await isReady('tiny', 1);
  });

  it('are found when the kind comes and Berth may read it, and a pod that a Service selects counts once', async () => {
    await cluster.client.create(CUSTOM_RESOURCE_DEFINITIONS, CRD);
    await waitFor('the kind to be served', () =>
      pool(tenant, port).then(
        () => true,
        () => false,
      ),
    );
    await rights.restore();
    await isReady('tiny', 2);
  });

  it('of a tenant are not for others, until the operator lets the namespace share', async () => {
    const foreign = await engine('foreign', 0, '127.0.0.4');
    await pod(other, 'c', '127.0.0.4');
    await pool(other, foreign);
    await isReady('foreign', 1, otherKey);
    await isReady('foreign', undefined);
    const labels = { 'berth.dev/shared-models': 'true' };
    await cluster.client.patch(NAMESPACES, { name: other }, { metadata: { labels } }, { type: 'merge' });
    await isReady('foreign', 1);
  });

  it('have a stream end whole whose pod goes, and get no more calls there', async () => {
    const text = await streamAcross(async (served) => {
      await cluster.client.delete(PODS, { namespace: tenant, name: served === 0 ? 'a' : 'b' });
      await isReady('tiny', 1);
    });
    expect(text).toMatch(whole);
  });

  it('have a stream end whole when the pool goes with the Service', async () => {
    await cluster.client.delete(SERVICES, { namespace: tenant, name: 'vllm' });
    const text = await streamAcross(async () => {
      await cluster.client.delete(INFERENCE_POOLS, { namespace: tenant, name: 'vllm' });
      await isReady('tiny', undefined);
    });
    expect(text).toMatch(whole);
  });

  it('are gone when the kind goes', async () => {
    await cluster.client.delete(CUSTOM_RESOURCE_DEFINITIONS, { name: CRD.metadata.name });
    await isReady('foreign', undefined, otherKey);
  });
});
