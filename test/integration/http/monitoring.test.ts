import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, inject, it } from 'vitest';
import { createKey } from '../../../src/access/create-key.ts';
import { metricsSchema } from '../../../src/http/features/metrics/schema.ts';
import { findCondition } from '../../../src/kube/conditions.ts';
import { NotFoundError } from '../../../src/kube/errors.ts';
import { LEASES } from '../../../src/kube/types.ts';
import { ACTIVITY_ROLES, activityLeaseOf } from '../../../src/resources/activity-lease.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { BUSYBOX_IMAGE } from '../../../tools/cluster/built/real-node.ts';
import { busyboxLayer, importImage } from '../../../tools/lib/images/image.ts';
import { run } from '../../../tools/lib/shell.ts';
import { findStaticBusybox } from '../../../tools/lib/host/requirements.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { type Call, clientOf } from '../../support/http/client.ts';
import { kindsCounted } from '../../support/kinds-counted.ts';
import { describeWith } from '../../support/needs.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Busybox, and a stand-in for nvidia-smi that answers the question of the exporter as driver 570 does, and no other. */
const IMAGE = 'localhost/berth-nvidia-smi:test';
const UUID = 'GPU-072b19bd-4ccf-63cf-6435-cf462aff833d';
const NVIDIA_SMI = `#!/bin/sh
if [ "$*" != "--query-gpu=uuid,utilization.gpu,memory.used,memory.total,temperature.gpu,power.draw --format=csv,noheader,nounits" ]; then
  echo "Field \\"$1\\" is not a valid field to query."
  exit 2
fi
echo "${UUID}, $(cat /tmp/load 2>/dev/null || echo 0), 1024, 23034, 41, [N/A]"
`;

let replicas: BerthProcess[] = [];
let tenant: TestNamespace;
let call: Call;

async function create(name: string, spec: Record<string, unknown>): Promise<void> {
  const metadata = { name, namespace: tenant.name };
  const wanted = { gpu: { product: 'NVIDIA-L4', count: 1 }, image: IMAGE, installMonitoring: true, ...spec };
  await tenant.client.create(GPU_INSTANCES, { metadata, spec: wanted } as never);
}

function get(name: string): Promise<GpuInstance> {
  return tenant.client.get(GPU_INSTANCES, { name, namespace: tenant.name });
}

/** Each test needs both GPUs of the node. */
async function removeAll(): Promise<void> {
  const namespace = tenant.name;
  const { items } = await tenant.client.list(GPU_INSTANCES, { namespace });
  for (const { metadata } of items) await tenant.client.delete(GPU_INSTANCES, { name: metadata.name, namespace });
  const left = async () => (await tenant.client.list(GPU_INSTANCES, { namespace })).items.length;
  await waitFor('the end of the instances', async () => (await left()) === 0, 60_000);
}

async function monitoringOf(name: string): Promise<string | undefined> {
  return findCondition((await get(name)).status?.conditions, 'Monitoring')?.reason;
}

const onNode = describeWith('real node');

onNode('install_monitoring', () => {
  beforeAll(async () => {
    const { kubeconfig, initPid = 0, programs = '' } = inject('cluster');
    const layer = await busyboxLayer((await findStaticBusybox()) ?? '');
    const tool = { type: 'file', content: Buffer.from(NVIDIA_SMI), mode: 0o755 } as const;
    const folders = ['usr/', 'usr/bin/'].map((name) => ({ name, type: 'directory' }) as const);
    const added = [...folders, { name: 'usr/bin/nvidia-smi', ...tool }];
    await importImage({ initPid, programs }, { reference: IMAGE, layer: [...layer, ...added], cmd: ['/bin/sh'] });
    tenant = await testNamespace();
    await kindsCounted(tenant.client);
    // The reports of roles that other files killed: a leader would wait for them for minutes.
    for (const role of ACTIVITY_ROLES) {
      const lease = { name: activityLeaseOf(role), namespace: 'berth-system' };
      await tenant.client.delete(LEASES, lease).catch((error: unknown) => {
        if (!(error instanceof NotFoundError)) throw error;
      });
    }
    replicas = await Promise.all((['controller', 'api', 'ssh'] as const).map((role) => startBerth(kubeconfig, role)));
    const { token } = await createKey(tenant.client, { namespace: tenant.name, displayName: 'metrics' });
    call = clientOf(replicas[1]?.url ?? '', token);
    await waitFor('the key', async () => (await call('GET', '/offers')).status === 200);
  });
  afterEach(removeAll);
  afterAll(async () => {
    for (const berth of replicas) await berth[Symbol.asyncDispose]();
    await tenant[Symbol.asyncDispose]();
  });

  it('measures container and GPUs from inside, for programs and for pages', async () => {
    await create('measured', { onStart: 'echo 97 >/tmp/load' });
    await waitFor('the exporter', async () => (await monitoringOf('measured')) === 'Measures', 60_000);
    // The second sample has the first rates.
    const record = await waitFor(
      'the rates',
      async () => {
        const { status, json } = await call('GET', '/instances/measured/metrics');
        if (status !== 200) return false;
        const found = metricsSchema.parse(json);
        return found.data.some(({ name }) => name === 'cpu_cores') && found;
      },
      60_000,
    );
    const last = (wanted: string) => record.data.find(({ name }) => name === wanted)?.values.at(-1);
    expect(record).toMatchObject({ instance_id: 'measured', step_seconds: 15, gpu_source: 'nvidia-smi' });
    expect(record.gpus).toEqual([{ uuid: UUID }]);
    expect(last('gpu_utilization_ratio')).toBe(0.97);
    expect(last('gpu_memory_limit_bytes')).toBe(23_034 * 1024 * 1024);
    expect(last('gpu_temperature_celsius')).toBe(41);
    expect(last('gpu_power_watts')).toBeUndefined();
    expect(last('memory_used_bytes')).toBeGreaterThan(0);
    expect(last('network_receive_bytes_per_second')).toBeGreaterThanOrEqual(0);
    expect(last('cpu_cores')).toBeGreaterThan(0);
    const plain = await call('GET', '/instances/measured/metrics', undefined, { accept: 'text/plain;version=0.0.4' });
    expect(plain.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(plain.text).toContain(
      `berth_instance_gpu_utilization_ratio{instance_id="measured",gpu="0",uuid="${UUID}"} 0.97\n`,
    );
    expect(plain.text).toMatch(/\nberth_instance_cpu_seconds_total\{instance_id="measured"\} \d/);
    const { json } = await call('GET', '/instances/measured');
    expect(JSON.stringify(json['warnings'])).not.toContain('install_monitoring');
  }, 150_000);

  it('says what is not measured: no tool for the GPUs, and a program of the image alone', async () => {
    await create('bare', { image: BUSYBOX_IMAGE });
    await create('alone', { runtype: 'args', command: ['/bin/sleep', '600'] });
    await waitFor('the missing tool', async () => (await monitoringOf('bare')) === 'NoGpuTool', 60_000);
    await waitFor('the missing DCGM', async () => (await monitoringOf('alone')) === 'ExporterNotFound', 60_000);
    const warnings = async (name: string) => JSON.stringify((await call('GET', `/instances/${name}`)).json['warnings']);
    await waitFor('the warning', async () => /measures no GPU.*neither nvidia-smi/.test(await warnings('bare')));
    await waitFor('the warning', async () => /only NVIDIA DCGM exporter can measure/.test(await warnings('alone')));
    const measured = await waitFor('numbers', async () => {
      const answer = await call('GET', '/instances/bare/metrics');
      return answer.status === 200 && metricsSchema.parse(answer.json);
    });
    expect(measured).toMatchObject({ gpu_source: null, gpus: [] });
    expect(measured.data.map(({ name }) => name)).toContain('memory_used_bytes');
    const refused = await waitFor('the refusal', async () => {
      const answer = await call('GET', '/instances/alone/metrics');
      return answer.status === 409 && answer.error['code'] === 'not_measured' && answer;
    });
    expect(refused.error['message']).toMatch(/DCGM exporter/);
  }, 150_000);

  it('keeps an instance from idleTimeout while its GPU is busy, and no longer', async () => {
    // The gateways report every 30 seconds. Busy until the idle one has ended.
    await create('works', { idleTimeout: '25s', onStart: 'echo 97 >/tmp/load' });
    await create('rests', { idleTimeout: '25s' });
    const readyOf = async (name: string) => findCondition((await get(name)).status?.conditions, 'Ready');
    await waitFor('the end of the idle one', async () => (await readyOf('rests'))?.reason === 'Idle', 90_000);
    expect((await readyOf('works'))?.status).toBe('True');
    const { kubeconfig, programs = '' } = inject('cluster');
    const inPod = ['--kubeconfig', kubeconfig, '-n', tenant.name, 'exec', 'works-1', '--'];
    await run(join(programs, 'kubectl'), [...inPod, 'sh', '-c', 'echo 0 >/tmp/load']);
    await waitFor('the end of the other', async () => (await readyOf('works'))?.reason === 'Idle', 90_000);
    const { conditions } = (await get('works')).status ?? {};
    expect(findCondition(conditions, 'Claimed')?.message).toBe('No session was open for 25s, and no GPU was busy.');
  }, 200_000);
});
