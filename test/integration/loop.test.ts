import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createKey } from '../../src/access/create-key.ts';
import { PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES } from '../../src/kube/types.ts';
import { run } from '../../tools/lib/shell.ts';
import { type BerthProcess, startBerth } from '../support/berth-process.ts';
import { cgiModel } from '../support/cgi-model.ts';
import { type Call, clientOf, type Json } from '../support/http/client.ts';
import { type TestNamespace, testNamespace } from '../support/test-cluster.ts';
import { waitFor } from '../support/wait-for.ts';

const H100 = 'NVIDIA-H100-80GB-HBM3';

let berth: BerthProcess;
let tenant: TestNamespace;
let call: Call;

beforeAll(async () => {
  tenant = await testNamespace();
  berth = await startBerth(inject('cluster').kubeconfig);
  const { token } = await createKey(tenant.client, { namespace: tenant.name, displayName: 'loop' });
  call = clientOf(berth.url, token);
  await waitFor('the key to be known', async () => (await call('GET', '/offers')).status === 200);
});

afterAll(async () => {
  await berth[Symbol.asyncDispose]();
  await tenant[Symbol.asyncDispose]();
});

async function offerOf(product: string, count: number): Promise<Json> {
  const { data } = await call('GET', '/offers');
  const found = data.find((offer) => offer['gpu_name'] === product && offer['gpu_count'] === count);
  if (found === undefined) throw new Error(`no offer of ${count} ${product}: ${JSON.stringify(data)}`);
  return found;
}

function kubectl(args: readonly string[]): ReturnType<typeof run> {
  const { programs, kubeconfig } = inject('cluster');
  const program = programs === undefined ? 'kubectl' : join(programs, 'kubectl');
  return run(program, ['--kubeconfig', kubeconfig, '-n', tenant.name, ...args]);
}

/** Resolves when the namespace has no pod, disk or instance any more. */
async function nothingLeft(): Promise<void> {
  await waitFor('pods and disks to go', async () => {
    const [pods, disks] = await Promise.all([
      tenant.client.list(PODS, { namespace: tenant.name, labelSelector: 'app.kubernetes.io/managed-by=berth' }),
      tenant.client.list(PERSISTENT_VOLUME_CLAIMS, { namespace: tenant.name }),
    ]);
    return pods.items.length === 0 && disks.items.length === 0;
  });
}

describe('the loop', () => {
  it('rents a GPU over HTTP, shows it running, renames it and gives it back', async () => {
    const offer = await offerOf(H100, 2);
    const before = Number(offer['available']);

    const created = await call('POST', '/instances', { ask_id: offer['id'], name: 'loop' });
    expect(created.status).toBe(201);
    expect(created.headers.get('location')).toMatch(new RegExp(`/api/v1/instances/${created.id}$`));
    const running = await waitFor('the instance to run', async () => {
      const { json } = await call('GET', `/instances/${created.id}`);
      return json['state'] === 'running' && json;
    });
    expect(running).toMatchObject({ gpu_name: H100, gpu_count: 2, name: 'loop', simulated: true });
    expect(running['node']).toMatch(/h100/);
    const held = await waitFor('the offer to shrink', async () => {
      const now = Number((await offerOf(H100, 2))['available']);
      return now < before && before - now;
    });
    expect(held).toBe(1);

    const renamed = await call('PATCH', `/instances/${created.id}`, { name: 'renamed', label: 'mine' });
    expect(renamed.json).toMatchObject({ name: 'renamed', label: 'mine' });

    const deleted = await call('DELETE', `/instances/${created.id}`);
    expect([deleted.status, deleted.json]).toEqual([200, { id: created.id, object: 'instance', deleted: true }]);
    await waitFor('the instance to go', async () => (await call('GET', `/instances/${created.id}`)).status === 404);
    await nothingLeft();
    await waitFor('the GPUs to be free', async () => Number((await offerOf(H100, 2))['available']) === before);
  });

  it('does the same by kubectl', async () => {
    const applied = await kubectl(['apply', '-f', 'deploy/samples/gpuinstance.yaml']);
    expect(applied.stderr + applied.stdout).toContain('created');
    const ready = await kubectl(['wait', 'gpuinstance/sample', '--for=condition=Ready', '--timeout=30s']);
    expect(ready.stdout).toContain('condition met');
    const shown = await kubectl(['get', 'gpuinstance', 'sample']);
    expect(shown.stdout).toMatch(/Running\s+NVIDIA-H100-80GB-HBM3\s+1\s+\S+h100\S+\s+OnDemand\s+2\.49/);
    const sample = await waitFor('the same over HTTP', async () => {
      const { json } = await call('GET', '/instances/sample');
      return json['state'] === 'running' && json;
    });
    expect(sample['name']).toBe('sample');
    const deleted = await kubectl(['delete', '-f', 'deploy/samples/gpuinstance.yaml', '--timeout=30s']);
    expect(deleted.stdout).toContain('deleted');
    await nothingLeft();
  });

  it('takes every sample', async () => {
    const { stdout, stderr, code } = await kubectl([
      'apply',
      '--server-side',
      '--force-conflicts',
      '--dry-run=server',
      '-f',
      'deploy/samples/',
    ]);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout.match(/server dry run/g)).toHaveLength(9);
  });
});

describe.runIf(inject('cluster').realNode !== undefined)('the model endpoints', () => {
  it('pass calls of each dialect to a labelled Service in the cluster', async () => {
    const { pod, service } = cgiModel(tenant.name, inject('cluster').realNode ?? '');
    await tenant.client.create(PODS, pod);
    await tenant.client.create(SERVICES, service);
    const model = await waitFor('the model to be found', async () => {
      const { data } = await call('GET', '/models');
      return data.find(({ id, ready_endpoints: ready }) => id === 'parrot' && Number(ready) > 0);
    });
    expect(model).toMatchObject({ object: 'model', ready_endpoints: 1 });

    const messages = [{ role: 'user', content: 'hello' }];
    const chat = await call('POST', '/chat/completions', { model: 'parrot', messages });
    expect([chat.status, chat.text]).toEqual([200, expect.stringContaining('"content":"chat"')]);
    const responses = await call('POST', '/responses', { model: 'parrot', input: 'hello' });
    expect([responses.status, responses.text]).toEqual([200, expect.stringContaining('"object":"response"')]);
    const answer = await call('POST', '/messages', { model: 'parrot', max_tokens: 8, messages });
    expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('"type":"message"')]);
    expect(chat.headers.get('x-berth-route')).toBeTruthy();
  });
});

it('keeps the key out of its log', () => {
  expect(berth.log()).not.toMatch(/berth_[A-Za-z0-9_-]{20}/);
});
