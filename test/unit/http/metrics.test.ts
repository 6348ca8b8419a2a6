import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { readDcgm } from '../../../src/http/features/metrics/dcgm.ts';
import { type Measured, readReport, withDcgm } from '../../../src/http/features/metrics/measured.ts';
import { formatOf, prometheusText } from '../../../src/http/features/metrics/prometheus.ts';
import { MAX_VALUES, metricsSchema } from '../../../src/http/features/metrics/schema.ts';
import { NotFoundError } from '../../../src/kube/errors.ts';
import type { Pod } from '../../../src/kube/types.ts';
import type { GpuInstance, GpuInstanceSpec, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { type LoneApi, type LoneApiOptions, startLoneApi } from '../../support/http/lone-api.ts';
import { EARLIER, NOW, startedPod } from '../../support/instance-world.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

const UUID = 'GPU-072b19bd-4ccf-63cf-6435-cf462aff833d';

const REPORT = {
  step: 15,
  age: 3.5,
  tool: 'nvidia-smi',
  gpus: [{ uuid: UUID }],
  totals: { cpu_seconds_total: 12.5, network_receive_bytes_total: 4096 },
  series: [
    { name: 'cpu_cores', values: [null, 0.1234567891234] },
    { name: 'memory_used_bytes', values: [1024, 2048] },
    { name: 'gpu_utilization_percent', gpu: 0, values: [7, 97] },
    { name: 'gpu_power_watts', gpu: 0, values: [70.5, null] },
  ],
};

function report(over: object = {}): Promise<Measured> {
  return readReport(JSON.stringify({ ...REPORT, ...over }), NOW);
}

describe('the report of an exporter', () => {
  it('becomes series of equal length, in base units', async () => {
    expect(await report()).toEqual({
      at: NOW - 3500,
      gpuSource: 'nvidia-smi',
      gpus: [{ uuid: UUID }],
      totals: REPORT.totals,
      series: [
        { name: 'cpu_cores', gpu: null, values: [null, 0.123456789] },
        { name: 'memory_used_bytes', gpu: null, values: [1024, 2048] },
        { name: 'gpu_utilization_ratio', gpu: 0, values: [0.07, 0.97] },
        { name: 'gpu_power_watts', gpu: 0, values: [70.5, null] },
      ],
    });
    const young = await report({ series: [REPORT.series[1], { name: 'cpu_cores', values: [1] }] });
    expect(young.series.map(({ values }) => values)).toEqual([
      [1024, 2048],
      [null, 1],
    ]);
  });

  it('is only numbers of known series, whatever the tenant puts in its place', async () => {
    const lie = await report({
      age: -5,
      tool: 'evil"} 1\n',
      gpus: [{ uuid: 'GPU-1"} 1\nberth_up 1' }, { uuid: 7 }],
      totals: { cpu_seconds_total: '1', evil_total: 1, disk_read_bytes_total: -1 },
      series: [
        { name: 'cpu_cores', values: ['1', -1, 1e300, {}, 2] },
        { name: 'cpu_cores', values: [9] },
        { name: 'constructor', values: [1] },
        { name: 'cpu_cores\n', values: [1] },
        { name: 'memory_used_bytes', gpu: 0, values: [1] },
        { name: 'gpu_power_watts', gpu: 5, values: [1] },
        { name: 'gpu_power_watts', values: [1] },
        { name: 'gpu_utilization_percent', gpu: 1, values: [5000] },
      ],
    });
    expect(lie).toMatchObject({ gpuSource: null, gpus: [{ uuid: null }, { uuid: null }], totals: {} });
    expect(lie.series).toEqual([
      { name: 'cpu_cores', gpu: null, values: [null, null, null, null, 2] },
      { name: 'gpu_utilization_ratio', gpu: 1, values: [null, null, null, null, 1] },
    ]);
  });

  it.each([
    ['more than an hour', { series: [{ name: 'cpu_cores', values: Array(MAX_VALUES + 1).fill(1) }] }],
    ['many series', { series: Array(1_000).fill(REPORT.series[0]) }],
    ['many GPUs', { gpus: Array.from({ length: 65 }, () => ({ uuid: UUID })) }],
    ['no series', { series: 'none' }],
    ['a series that is none', { series: [REPORT.series[0], 1] }],
    ['a long series', { series: [{ name: 'cpu_cores', values: [1], x: 'x'.repeat(20_000) }] }],
    ['much beside its series', { x: 'x'.repeat(70_000) }],
  ])('is none with %s', async (_what, over) => {
    await expect(report(over)).rejects.toThrow();
  });

  it('hides no series behind another spelling, and is read by parts that others come between', async () => {
    const text = JSON.stringify(REPORT).replace('"series"', String.raw`"s\u0065ries"`);
    await expect(readReport(text, NOW)).rejects.toThrow();
    const gpus = Array.from({ length: 64 }, () => ({ uuid: UUID }));
    const values = Array.from({ length: MAX_VALUES }, (_, index) => index + 0.123456789012);
    const names = ['gpu_utilization_percent', 'gpu_power_watts', 'gpu_memory_used_bytes', 'gpu_temperature_celsius'];
    const series = gpus.flatMap((_, gpu) => names.map((name) => ({ name, gpu, values })));
    let turns = 0;
    const count = (): void => {
      turns += 1;
      again = setImmediate(count);
    };
    let again = setImmediate(count);
    const read = await report({ gpus, series });
    clearImmediate(again);
    expect(read.series).toHaveLength(256);
    expect(read.series.at(-1)?.values).toHaveLength(MAX_VALUES);
    expect(turns).toBeGreaterThanOrEqual(7);
  });
});

// Lines of dcgm-exporter 3.3 and 4.2, with the labels that it has on Kubernetes.
function dcgmLine(field: string, value: string, labels = `pod="one-1"`): string {
  const where = `gpu="3",UUID="${UUID}",pci_bus_id="00000000:18:00.0",device="nvidia3",modelName="NVIDIA H100 80GB HBM3",Hostname="n"`;
  return `${field}{${where},container="main",namespace="a",${labels}} ${value}\n`;
}
const DCGM = [
  '# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n',
  dcgmLine('DCGM_FI_DEV_GPU_UTIL', '44'),
  dcgmLine('DCGM_FI_PROF_GR_ENGINE_ACTIVE', '0.13'),
  dcgmLine('DCGM_FI_DEV_GPU_UTIL', '99', 'pod="other-1"'),
  dcgmLine('DCGM_FI_DEV_FB_USED', '1024'),
  dcgmLine('DCGM_FI_DEV_FB_FREE', '3072'),
  dcgmLine('DCGM_FI_DEV_GPU_TEMP', '61'),
  dcgmLine('DCGM_FI_DEV_POWER_USAGE', '302.206000'),
  dcgmLine('DCGM_FI_DEV_XID_ERRORS', '31'),
  dcgmLine('DCGM_FI_DEV_SM_CLOCK', 'NaN'),
].join('');
const OWN_POD = { namespace: 'a', name: 'one-1' };

describe('DCGM exporter', () => {
  it('tells the GPUs of one pod among those of the node', () => {
    const found = readDcgm(DCGM, OWN_POD, NOW);
    expect(found?.gpus).toEqual([{ uuid: UUID }]);
    expect(Object.fromEntries(found?.series.map(({ name, values }) => [name, values[0]]) ?? [])).toEqual({
      gpu_utilization_ratio: 0.44,
      gpu_memory_used_bytes: 1024 * 1024 * 1024,
      gpu_memory_limit_bytes: 4096 * 1024 * 1024,
      gpu_temperature_celsius: 61,
      gpu_power_watts: 302.206,
      gpu_last_xid: 31,
    });
    expect(readDcgm(DCGM, { namespace: 'b', name: 'one-1' }, NOW)).toBeUndefined();
    expect(readDcgm('<html>', OWN_POD, NOW)).toBeUndefined();
  });

  it('tells the slices of MIG apart, and reads its older labels', () => {
    const text =
      `DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="${UUID}",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7",pod_name="one-1",pod_namespace="a"} 0.25\n` +
      `DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="${UUID}",GPU_I_PROFILE="1g.10gb",GPU_I_ID="8",pod_name="one-1",pod_namespace="a"} 0.5\n`;
    expect(readDcgm(text, OWN_POD, NOW)?.series).toEqual([
      { name: 'gpu_utilization_ratio', gpu: 0, values: [0.25] },
      { name: 'gpu_utilization_ratio', gpu: 1, values: [0.5] },
    ]);
  });

  it('adds Xid errors to an exporter that measures the GPU, and all to one that measures none', async () => {
    const dcgm = readDcgm(DCGM, OWN_POD, NOW);
    const both = withDcgm(await report(), dcgm);
    expect(both?.series.slice(REPORT.series.length)).toEqual([{ name: 'gpu_last_xid', gpu: 0, values: [null, 31] }]);
    expect(both?.gpuSource).toBe('nvidia-smi');
    const blind = withDcgm(await report({ tool: 'none', gpus: [], series: REPORT.series.slice(0, 2) }), dcgm);
    expect(blind?.gpuSource).toBe('dcgm');
    expect(blind?.series.find(({ name }) => name === 'gpu_utilization_ratio')?.values).toEqual([null, 0.44]);
    expect(withDcgm(undefined, undefined)).toBeUndefined();
  });
});

it('is written as Prometheus reads it', async () => {
  const text = prometheusText('one', await report(), 'prometheus');
  expect(text).toContain('# TYPE berth_instance_cpu_seconds_total counter\n');
  expect(text).toContain('berth_instance_cpu_seconds_total{instance_id="one"} 12.5\n');
  expect(text).toContain(`berth_instance_gpu_utilization_ratio{instance_id="one",gpu="0",uuid="${UUID}"} 0.97\n`);
  expect(text).not.toMatch(/gpu_power_watts|cpu_cores|EOF/);
  const open = prometheusText('one', await report(), 'openmetrics');
  expect(open).toContain('# TYPE berth_instance_cpu_seconds counter\n');
  expect(open.endsWith('\n# EOF\n')).toBe(true);
});

it.each([
  [undefined, 'json'],
  ['*/*', 'json'],
  ['text/plain', 'prometheus'],
  ['text/plain;version=0.0.4', 'prometheus'],
  ['application/json, text/plain;q=0.5', 'json'],
  ['text/html', 'json'],
  // Prometheus 2 and 3.
  ['application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1', 'openmetrics'],
  [
    'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,*/*;q=0.2',
    'openmetrics',
  ],
  ['text/plain;version=0.0.4;q=1,*/*;q=0.1', 'prometheus'],
])('a client that accepts %s gets %s', (accept, format) => {
  expect(formatOf(accept)).toBe(format);
});

let api: LoneApi | undefined;
afterEach(() => api?.close());

interface World {
  spec?: Partial<GpuInstanceSpec>;
  status?: Partial<GpuInstanceStatus>;
  labels?: Record<string, string>;
  others?: Pod[];
  readMonitor?: LoneApiOptions['readMonitor'];
}

const MONITORED = { 'berth.dev/monitor': 'true' };

async function serve({ spec, status, labels = MONITORED, others = [], readMonitor }: World) {
  const running = { name: 'main', containerID: 'c', state: { running: {} } };
  const { metadata, spec: known } = gpuInstance('one', { installMonitoring: true, ...spec });
  const instance: GpuInstance = {
    metadata: { ...metadata, namespace: 'a' },
    spec: known,
    status: { claim: claimOn('n'), incarnation: 1, podName: 'one-1', ...status },
  };
  api = await startLoneApi({
    tenants: ['a', 'b'],
    instances: [instance],
    pods: [startedPod({ containerStatuses: [running] } as never, { namespace: 'a', labels }), ...others],
    client: { get: () => Promise.reject(new NotFoundError({ message: 'gone', status: 404, reason: 'NotFound' })) },
    ...(readMonitor && { readMonitor }),
  });
  const { port } = api.address;
  return async (tenant: string, accept?: string) => {
    const headers = { authorization: `Bearer ${tenant}`, ...(accept !== undefined && { accept }) };
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/instances/one/metrics`, { headers });
    return { status: answer.status, type: answer.headers.get('content-type'), text: await answer.text() };
  };
}

function codeOf({ text }: { text: string }): string {
  return (JSON.parse(text) as { error: { code: string } }).error.code;
}

/** A DCGM exporter that answers on the loopback, as a pod of `namespace`. */
async function dcgmPod(namespace: string) {
  const server = createServer((_request, response) => response.end(DCGM));
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const ports = [{ name: 'metrics', containerPort: (server.address() as AddressInfo).port }];
  const pod: Pod = {
    metadata: { name: 'dcgm', namespace, labels: { app: 'nvidia-dcgm-exporter' } },
    spec: { nodeName: 'n', containers: [{ name: 'exporter', image: 'dcgm', ports }] },
    status: { podIP: '127.0.0.1' },
  };
  return { pod, [Symbol.asyncDispose]: async () => void server.close() };
}

describe('GET /instances/{id}/metrics', () => {
  it('answers the hour as JSON and the newest values as text, to the tenant alone', async () => {
    const asked: object[] = [];
    const get = await serve({
      readMonitor: (pod) => {
        asked.push(pod);
        return Promise.resolve(JSON.stringify(REPORT));
      },
    });
    const { status, text } = await get('a');
    expect(status).toBe(200);
    const record = metricsSchema.parse(JSON.parse(text));
    expect(record).toMatchObject({ instance_id: 'one', step_seconds: 15, gpu_source: 'nvidia-smi' });
    expect(record.data.map(({ name, gpu }) => `${name}/${gpu}`)).toEqual([
      'cpu_cores/null',
      'memory_used_bytes/null',
      'gpu_power_watts/0',
      'gpu_utilization_ratio/0',
    ]);
    const plain = await get('a', 'text/plain;version=0.0.4');
    expect([plain.status, plain.type]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
    expect(plain.text).toContain('berth_instance_memory_used_bytes{instance_id="one"} 2048');
    expect((await get('a', 'application/openmetrics-text')).text).toMatch(/# EOF\n$/);
    const stranger = await get('b');
    expect([stranger.status, codeOf(stranger)]).toEqual([404, 'instance_not_found']);
    const own = { namespace: 'a', pod: 'one-1' };
    expect(asked).toEqual([own, own, own]);
  });

  it.each<[string, World, number, string]>([
    ['nothing was asked for', { spec: { installMonitoring: false } }, 409, 'not_measured'],
    ['the node is simulated', { status: { claim: claimOn('n', { simulated: true }) } }, 409, 'instance_simulated'],
    ['there is no pod', { status: { podName: 'one-2' } }, 409, 'instance_not_running'],
    ['the exporter does not answer', {}, 503, 'metrics_unavailable'],
    ['another program answers', { readMonitor: () => Promise.resolve('<html>') }, 503, 'metrics_unavailable'],
    [
      'only the program of the image runs',
      {
        labels: {},
        status: {
          conditions: [
            {
              type: 'Monitoring',
              status: 'False',
              reason: 'ExporterNotFound',
              message: '',
              lastTransitionTime: EARLIER,
            },
          ],
        },
      },
      409,
      'not_measured',
    ],
  ])('says so when %s', async (_what, world, status, code) => {
    const answer = await (await serve(world))('a');
    expect([answer.status, codeOf(answer)]).toEqual([status, code]);
  });

  it('reads DCGM exporter for an instance without an exporter, but not one that a tenant runs', async () => {
    await using dcgm = await dcgmPod('gpu-operator');
    const get = await serve({ labels: {}, others: [dcgm.pod] });
    const record = metricsSchema.parse(JSON.parse((await get('a')).text));
    expect(record.gpu_source).toBe('dcgm');
    expect(record.data.find(({ name }) => name === 'gpu_last_xid')).toEqual({
      name: 'gpu_last_xid',
      gpu: 0,
      values: [31],
    });
    await api?.close();
    const fake: Pod = { ...dcgm.pod, metadata: { ...dcgm.pod.metadata, namespace: 'b' } };
    expect(codeOf(await (await serve({ labels: {}, others: [fake] }))('a'))).toBe('metrics_unavailable');
  });
});
