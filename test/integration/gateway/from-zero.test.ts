import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { PODS, SERVICES } from '../../../src/kube/types.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import type { Cluster } from '../../support/http/api.ts';
import { openCluster } from '../../support/http/open.ts';
import { type Replicas, startReplicas } from '../../support/http/replicas.ts';
import { deployLlama, DEPLOYMENTS } from '../../support/llama/pod.ts';
import { LLAMA_MODEL } from '../../support/llama/server.ts';
import { waitFor } from '../../support/wait-for.ts';

const NAME = 'llama';
const { realNode, initPid, programs, kubeconfig } = inject('cluster');

describe.runIf(realNode !== undefined)('llama.cpp at zero replicas on the real node', () => {
  let cluster: Cluster;
  let models: string;
  let api: Replicas;
  let controller: BerthProcess;
  let key: string;

  beforeAll(async () => {
    if (initPid === undefined || programs === undefined) throw new Error('a real node has both');
    cluster = await openCluster();
    models = await cluster.namespace('models');
    const own = await cluster.namespace('berth');
    const node = { initPid, programs };
    await deployLlama(cluster.client, { node, nodeName: realNode ?? '', namespace: models, name: NAME });
    await cluster.client.create(SERVICES, {
      metadata: {
        namespace: models,
        name: NAME,
        labels: { 'berth.dev/model-server': 'true' },
        annotations: {
          'berth.dev/scale-target': `deployments.apps/${NAME}`,
          'berth.dev/scale-idle-seconds': '60',
          'berth.dev/model-names': LLAMA_MODEL,
        },
      },
      spec: { selector: { app: NAME }, ports: [{ name: 'http', port: 80, targetPort: 8000 }] },
    });
    const env = { BERTH_SCALE_NAMESPACES: models };
    controller = await startBerth(kubeconfig, 'controller', own, { env });
    api = await startReplicas(kubeconfig, { namespace: own, env });
    key = await cluster.key(models, { scopes: ['models', 'compute:read'] }, api);
  }, 600_000);

  afterAll(async () => {
    await api[Symbol.asyncDispose]();
    await controller[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
  });

  async function get(path: string, base = api.url): Promise<Record<string, unknown>> {
    const response = await fetch(`${base}/api/v1${path}`, { headers: { authorization: `Bearer ${key}` } });
    return (await response.json()) as Record<string, unknown>;
  }

  async function call(stream: boolean): Promise<{ status: number; text: string }> {
    const response = await fetch(`${api.url}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: LLAMA_MODEL,
        messages: [{ role: 'user', content: 'Say hello' }],
        max_tokens: 4,
        stream,
      }),
    });
    return { status: response.status, text: await response.text() };
  }

  async function isListed(fields: object): Promise<void> {
    for (const base of api.replicas)
      await waitFor(`the list of ${base}`, async () => {
        const record = await get(`/models/${LLAMA_MODEL}`, base);
        return Object.entries(fields).every(([name, value]) => record[name] === value);
      });
  }

  /** Each change of the spec counts one. */
  async function deployment(): Promise<{ generation: number | undefined; replicas: number | undefined }> {
    const { metadata, spec } = await cluster.client.get(DEPLOYMENTS, { namespace: models, name: NAME });
    return { generation: metadata.generation, replicas: spec?.replicas };
  }

  async function freeGpus(): Promise<number> {
    const { data } = (await get('/offers')) as { data?: Record<string, unknown>[] };
    const offer = data?.find((one) => one['gpu_name'] === 'NVIDIA-L4' && one['gpu_count'] === 1);
    return Number(offer?.['available'] ?? 0);
  }

  it('answers 100 calls that come at once after one scale-up, and gives the GPU back when nobody calls', async () => {
    await isListed({ ready_endpoints: 0, scales_from_zero: true, expected_start_seconds: null });
    const free = await freeGpus();
    const began = performance.now();

    const answers = await Promise.all(Array.from({ length: 100 }, (_, index) => call(index % 2 === 0)));

    const seconds = Math.round((performance.now() - began) / 1000);
    process.stderr.write(`100 calls at zero replicas were answered within ${seconds} s.\n`);
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    for (const [index, { text }] of answers.entries()) {
      if (index % 2 === 0) expect(text).toContain('data: [DONE]');
      else expect(JSON.parse(text)).toMatchObject({ object: 'chat.completion' });
    }
    expect(await deployment()).toEqual({ generation: 2, replicas: 1 });
    await isListed({ ready_endpoints: 1, scales_from_zero: true, context_length: 4096 });
    const { expected_start_seconds: expected } = await get(`/models/${LLAMA_MODEL}`);
    expect(expected).toBeGreaterThanOrEqual(1);
    expect(expected).toBeLessThanOrEqual(seconds + 1);
    await waitFor('the GPU to be taken', async () => (await freeGpus()) === free - 1);

    await waitFor('zero replicas', async () => (await deployment()).replicas === 0, 180_000);
    await waitFor('the pod to go', async () => {
      const pods = await cluster.client.list(PODS, { namespace: models });
      return pods.items.length === 0;
    });
    await waitFor('the GPU to be free', async () => (await freeGpus()) === free);
    // What the last replica served is remembered, the length of its context too.
    await isListed({ ready_endpoints: 0, scales_from_zero: true, context_length: 4096 });

    expect(await call(true)).toMatchObject({ status: 200 });
    expect(await deployment()).toEqual({ generation: 4, replicas: 1 });
  }, 600_000);
});
