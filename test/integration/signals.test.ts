import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ssh2 from 'ssh2';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createKey } from '../../src/access/create-key.ts';
import { type KubeConnection, loadKubeConfig } from '../../src/kube/config/config.ts';
import { NODES, PODS } from '../../src/kube/types.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../src/resources/instances/gpu-instance.ts';
import { instanceState } from '../../src/resources/instances/instance-state.ts';
import { SSH_KEYS } from '../../src/resources/ssh-key.ts';
import { newEd25519Key } from '../../src/ssh/login/ed25519-key.ts';
import { ALERTS_TEXT, isOfNode, METRIC_TYPES } from '../support/alert-rules.ts';
import { type BerthProcess, startBerth } from '../support/berth-process.ts';
import { writeKubeconfig } from '../support/fault-proxy/kubeconfig.ts';
import { type FaultProxy, faultProxy } from '../support/fault-proxy/proxy.ts';
import { addNode, gpuNode } from '../support/http/fleet.ts';
import { hasPrometheus, type Prometheus, startPrometheus } from '../support/prometheus.ts';
import type { ScriptedEngine } from '../support/scripted-engine.ts';
import { serveModel } from '../support/serve-model.ts';
import { type TestNamespace, testNamespace } from '../support/test-cluster.ts';
import { waitFor } from '../support/wait-for.ts';

const PRODUCT = 'NVIDIA-SIGNALS-TEST';
const GPUS = 'nvidia.com/gpu';
const { kubeconfig } = inject('cluster');

/** The rules of the chart, in seconds for minutes, and blind to what other tests leave in the cluster. */
const RULES = ALERTS_TEXT.replaceAll(/for: \d+m/g, 'for: 6s')
  .replaceAll(/\[\d+m\]/g, '[15s]')
  .replace('product!="other"}) > 3600', `product="${PRODUCT}"}) > 3`)
  .replace('(berth_unhealthy_gpus)', `(berth_unhealthy_gpus{product="${PRODUCT}"})`);

let tenant: TestNamespace;
let folder: string;
let upstream: KubeConnection;
let proxy: FaultProxy;
let controller: BerthProcess;
let api: BerthProcess;
let ssh: BerthProcess;
let prometheus: Prometheus;
let engine: ScriptedEngine;
let removeNode: () => Promise<void>;
let token: string;

beforeAll(async () => {
  tenant = await testNamespace();
  const { name: namespace, client } = tenant;
  folder = await mkdtemp(join(tmpdir(), 'berth-signals-'));
  upstream = await loadKubeConfig({ kubeconfig });
  proxy = await faultProxy(upstream);
  removeNode = await addNode(client, gpuNode(`${namespace}-node`, PRODUCT, 2));
  engine = await serveModel(tenant, { engine: 'vllm', models: ['tiny'] });
  [controller, api, ssh] = await Promise.all([
    startBerth(await writeKubeconfig(join(folder, 'kubeconfig'), proxy.server), 'controller', namespace),
    startBerth(kubeconfig, 'api', namespace),
    startBerth(kubeconfig, 'ssh', namespace),
  ]);
  ({ token } = await createKey(client, { namespace, scopes: ['models'] }));
});

afterAll(async () => {
  for (const { metadata } of (await tenant.client.list(GPU_INSTANCES, { namespace: tenant.name })).items) {
    await tenant.client.delete(GPU_INSTANCES, { namespace: tenant.name, name: metadata.name });
  }
  await removeNode();
  for (const one of [controller, api, ssh, proxy, tenant]) await one[Symbol.asyncDispose]();
  await upstream.close();
  await rm(folder, { recursive: true });
});

function rent(name: string, count: number): Promise<GpuInstance> {
  const metadata = { name, namespace: tenant.name };
  return tenant.client.create(GPU_INSTANCES, { metadata, spec: { gpu: { product: PRODUCT, count } } } as never);
}

async function stateOf(name: string): Promise<string> {
  return instanceState(await tenant.client.get(GPU_INSTANCES, { namespace: tenant.name, name })).state;
}

async function askModel(): Promise<number> {
  const answer = await fetch(`${api.url}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content: 'Hello' }] }),
  });
  await answer.text();
  return answer.status;
}

/** Waits until these alerts fire, whatever else does. Meanwhile it does again and again what the fault spoils. */
function fires(alerts: readonly string[], use: () => Promise<unknown> = () => Promise.resolve()): Promise<unknown> {
  return waitFor(
    `${alerts.join(' and ')} to fire`,
    async () => {
      await use();
      const firing = await prometheus.firing();
      return alerts.every((alert) => firing.includes(alert));
    },
    60_000,
  );
}

function isOver(alert: string): Promise<unknown> {
  return waitFor(`${alert} to be over`, async () => !(await prometheus.firing()).includes(alert), 60_000);
}

it('every metric that the roles show is in the table, with its type, and no other', async () => {
  await using notifier = await startBerth(kubeconfig, 'notifier', tenant.name);
  const shown = new Map<string, string>();
  for (const { metricsUrl } of [controller, api, ssh, notifier]) {
    const text = await (await fetch(`${metricsUrl}/metrics`)).text();
    for (const [, name = '', type = ''] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) shown.set(name, type);
  }
  const own = [...shown].filter(([name]) => !isOfNode(name));
  expect(Object.fromEntries(own)).toEqual(Object.fromEntries(METRIC_TYPES));
});

describe.skipIf(!(await hasPrometheus()))('a Prometheus beside the roles', () => {
  beforeAll(async () => {
    const targets = { controller: controller.metricsUrl, api: api.metricsUrl, ssh: ssh.metricsUrl };
    prometheus = await startPrometheus(targets, RULES);
  });
  afterAll(() => prometheus[Symbol.asyncDispose]());

  it('sees no alert while instances are rented and models are called', async () => {
    await waitFor('all targets', async () => (await prometheus.query('sum(up) == 3')).length > 0);
    await waitFor('no alert', async () => (await prometheus.firing()).length === 0);
    const began = performance.now();
    await rent('first', 2);
    await waitFor('the instance to run', async () => (await stateOf('first')) === 'running', 60_000);
    await waitFor('the model', async () => (await askModel()) === 200);
    const [scrapes] = await prometheus.query('sum(count_over_time(up[10m]))');
    await waitFor('six more scrapes of each', async () => {
      const [now] = await prometheus.query('sum(count_over_time(up[10m]))');
      return (now?.value ?? 0) >= (scrapes?.value ?? 0) + 18;
    });
    const seconds = Math.floor((performance.now() - began) / 1000) - 1;
    expect(await prometheus.query(`count_over_time(ALERTS{alertstate="firing"}[${seconds}s])`)).toEqual([]);
    const rented = await prometheus.query(`berth_gpus{product="${PRODUCT}",state="rented"}`);
    expect(rented.map(({ value }) => value)).toEqual([2]);
  });

  it.concurrent('sees a GPU that its device plugin takes out of service, and that it comes back', async () => {
    const name = `${tenant.name}-node`;
    const set = (count: string) => {
      const status = { capacity: { [GPUS]: count } };
      return tenant.client.patch(NODES, { name }, { status }, { type: 'strategic', subresource: 'status' });
    };
    await set('3');
    await fires(['BerthGPUsUnhealthy']);
    await set('2');
    await isOver('BerthGPUsUnhealthy');
  });

  it.concurrent('sees an on-demand instance that waits, until it is gone', async () => {
    await rent('second', 1);
    await fires(['BerthWaitingLong']);
    await tenant.client.delete(GPU_INSTANCES, { namespace: tenant.name, name: 'second' });
    await isOver('BerthWaitingLong');
  });

  it.concurrent('sees a model server that has gone, and that its calls fail', async () => {
    await engine.close();
    await fires(['BerthModelServersOut', 'BerthModelCallsFailing'], async () =>
      expect(await askModel()).toBeGreaterThanOrEqual(500),
    );
  });

  it('sees an API server that fails, and what becomes of the work on it', async () => {
    proxy.faults.refuse = ({ url = '', method }) =>
      url.includes('/leases') || method === 'GET' ? undefined : { status: 500, reason: 'InternalError' };
    for (const name of ['third', 'fourth', 'fifth']) await rent(name, 1);
    await fires(['BerthAPIServerErrors', 'BerthReconcileErrors']);
    proxy.faults.refuse = undefined;
  });

  it.concurrent('sees that nobody leads, and that the API is gone', async () => {
    controller.child.kill('SIGKILL');
    api.child.kill('SIGKILL');
    await fires(['BerthNoLeader', 'BerthAPIDown']);
  });

  it.concurrent('sees sessions that do not reach their instance', async () => {
    const { client, name: namespace } = tenant;
    // It would settle an instance that it did not place.
    controller.child.kill('SIGKILL');
    const key = newEd25519Key('');
    const name = 'unreached';
    await client.create(PODS, {
      metadata: { name, namespace },
      spec: { nodeName: `${namespace}-node`, containers: [{ name: 'main', image: 'none' }] },
    });
    await client.create(SSH_KEYS, {
      apiVersion: 'berth.dev/v1alpha1',
      kind: 'SSHKey',
      metadata: { name: 'laptop', namespace },
      spec: { publicKey: key.public, displayName: 'laptop' },
    });
    await rent(name, 1);
    const status = { podName: name, ssh: { host: '127.0.0.1', port: 1, user: `${name}.${namespace}` } };
    await client.patch(GPU_INSTANCES, { namespace, name }, { status }, { type: 'merge', subresource: 'status' });
    await waitFor('a running container', async () => {
      const pod = await client.get(PODS, { namespace, name });
      return pod.status?.containerStatuses?.[0]?.state?.running !== undefined;
    });
    const said = await waitFor('a session', () => session(key.private, `${name}.${namespace}`));
    expect(said).toContain('cannot be reached');
    await fires(['BerthSSHSessionsFailing'], () => session(key.private, `${name}.${namespace}`));
  });

  it('sees that the SSH gateway is gone', async () => {
    ssh.child.kill('SIGKILL');
    await fires(['BerthSSHDown']);
  });
});

/** What a session says on stderr; undefined when the login fails. */
async function session(privateKey: string, username: string): Promise<string | undefined> {
  const client = new ssh2.Client();
  try {
    return await new Promise<string | undefined>((resolve) => {
      client.on('error', () => resolve(undefined));
      client.on('ready', () =>
        client.exec('true', (error, channel) => {
          if (error !== undefined) {
            resolve(undefined);
            return;
          }
          let said = '';
          channel.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
          channel.on('close', () => resolve(said)).resume();
        }),
      );
      client.connect({ host: '127.0.0.1', port: ssh.sshPort, username, privateKey });
    });
  } finally {
    client.end();
  }
}
