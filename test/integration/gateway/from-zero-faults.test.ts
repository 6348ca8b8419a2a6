import type { AddressInfo, Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { ENDPOINT_SLICES, LEASES, SERVICES } from '../../../src/kube/types.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import type { Cluster } from '../../support/http/api.ts';
import { openCluster } from '../../support/http/open.ts';
import { type Replicas, startReplicas } from '../../support/http/replicas.ts';
import { DEPLOYMENTS } from '../../support/llama/pod.ts';
import { type ScriptedEngine, startEngine } from '../../support/scripted-engine.ts';
import { waitFor } from '../../support/wait-for.ts';
import { openWay, ownAddress } from '../../support/way.ts';

const NAME = 'scripted';
const { kubeconfig } = inject('cluster');

describe('a model at zero replicas', () => {
  let cluster: Cluster;
  let own: string;
  let api: Replicas;
  let controllers: BerthProcess[];
  let engine: ScriptedEngine;
  let way: Server;
  let key: string;

  beforeAll(async () => {
    cluster = await openCluster();
    own = await cluster.namespace('berth');
    engine = await startEngine({ engine: 'vllm' });
    way = await openWay(engine.port);
    const labels = { app: NAME };
    await cluster.client.create(DEPLOYMENTS, {
      metadata: { namespace: own, name: NAME },
      spec: {
        replicas: 0,
        selector: { matchLabels: labels },
        // Its pods stay pending. The test says when a server is there.
        template: {
          metadata: { labels },
          spec: { schedulingGates: [{ name: 'test/never' }], containers: [{ name: 'main', image: 'none' }] },
        },
      },
    });
    await cluster.client.create(SERVICES, {
      metadata: {
        namespace: own,
        name: NAME,
        labels: { 'berth.dev/model-server': 'true' },
        annotations: { 'berth.dev/scale-target': `deployments.apps/${NAME}`, 'berth.dev/model-names': 'tiny' },
      },
      spec: { ports: [{ name: 'http', port: 80 }] },
    });
    const env = { BERTH_SCALE_NAMESPACES: own };
    controllers = [
      await startBerth(kubeconfig, 'controller', own, { env }),
      await startBerth(kubeconfig, 'controller', own, { env }),
    ];
    api = await startReplicas(kubeconfig, { namespace: own, env });
    key = await cluster.key(await cluster.namespace('from-zero-caller'), { scopes: ['models'] }, api);
  }, 240_000);

  afterAll(async () => {
    await api[Symbol.asyncDispose]();
    for (const controller of controllers) await controller[Symbol.asyncDispose]();
    way.close();
    await engine.close();
    await cluster[Symbol.asyncDispose]();
  });

  function call(base: string): Promise<number> {
    return fetch(`${base}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content: 'Hello' }] }),
    }).then(
      async (response) => {
        await response.text();
        return response.status;
      },
      () => 0,
    );
  }

  function kill({ child }: BerthProcess): Promise<unknown> {
    const exited = new Promise((resolve) => {
      child.once('exit', resolve);
    });
    child.kill('SIGKILL');
    return exited;
  }

  /** An address without a pod counts in Berth's own namespace. */
  async function appear(): Promise<void> {
    const labels = { 'kubernetes.io/service-name': NAME, 'berth.dev/model-server': 'true' };
    await cluster.client.create(ENDPOINT_SLICES, {
      metadata: { namespace: own, name: NAME, labels },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: (way.address() as AddressInfo).port }],
      endpoints: [{ addresses: [ownAddress()], conditions: { ready: true } }],
    });
  }

  it('comes up once although the leading controller and a replica of the gateway are killed', async () => {
    const leader = await waitFor('a leader', async () => {
      const { spec } = await cluster.client.get(LEASES, { namespace: own, name: 'berth-controller' });
      return controllers.find(({ child }) => spec?.holderIdentity?.includes(`_${child.pid}_`));
    });
    await waitFor('the Lease of the server', async () => {
      const { items } = await cluster.client.list(LEASES, {
        namespace: own,
        labelSelector: 'berth.dev/model-lease=true',
      });
      return items[0]?.metadata.annotations?.['berth.dev/asleep-after-renewal'] !== undefined;
    });
    await kill(leader);
    const [one, two] = api.replicas;
    const held = Array.from({ length: 20 }, () => call(one));
    const lost = Array.from({ length: 20 }, () => call(two));
    await waitFor('a renewal', async () => {
      const { items } = await cluster.client.list(LEASES, {
        namespace: own,
        labelSelector: 'berth.dev/model-lease=true',
      });
      return items[0]?.spec?.renewTime !== undefined;
    });
    await kill(api.processes[1]);
    expect(new Set(await Promise.all(lost))).toEqual(new Set([0]));

    const scaled = await waitFor(
      'a replica',
      async () => {
        const { spec, metadata } = await cluster.client.get(DEPLOYMENTS, { namespace: own, name: NAME });
        return spec?.replicas === 1 && metadata;
      },
      60_000,
    );
    await appear();

    expect(new Set(await Promise.all(held))).toEqual(new Set([200]));
    const { metadata } = await cluster.client.get(DEPLOYMENTS, { namespace: own, name: NAME });
    expect([scaled.generation, metadata.generation]).toEqual([2, 2]);
  }, 180_000);
});
