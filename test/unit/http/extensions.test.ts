import { expect, it } from 'vitest';
import { toInstancePatch, toInstanceSpec } from '../../../src/http/features/instances/to-spec.ts';
import { parseBody } from '../../../src/http/interface/validate.ts';
import { ApiError } from '../../../src/http/interface/errors/api-error.ts';
import { componentSchemas } from '../../../src/http/server/openapi/document.ts';
import { createInstanceSchema, updateInstanceSchema } from '../../../src/http/features/instances/schema.ts';
import { gpuInstanceSpecSchema } from '../../../src/resources/instances/gpu-instance.ts';

// What POST and PATCH of instances take beside the fields of the specification.

function specOf(body: unknown) {
  return toInstanceSpec(parseBody(createInstanceSchema, body)).spec;
}

function refusedFields(body: unknown, schema: typeof createInstanceSchema | typeof updateInstanceSchema): unknown {
  try {
    return parseBody<unknown>(schema, body);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return (error.extra['fields'] as { path: string }[]).map(({ path }) => path);
  }
}

const EVERYTHING = {
  gpu: { name: 'H100', count: 2, memory_mb: 80_000, isolation: 'whole', mig_profile: null },
  env: { HF_TOKEN: 'secret', EMPTY: '' },
  ports: [{ container_port: 8000, name: 'http' }, { container_port: 8000, protocol: 'udp' }, { container_port: 22 }],
  command: ['vllm'],
  args: ['serve'],
  on_start: 'echo hello',
  max_price_per_hour: '2.49',
  max_duration: '12h',
  idle_timeout: '1h30m',
  on_expiry: 'delete',
  on_gpu_failure: 'restart',
  on_no_capacity: 'queue',
  disk_policy: 'retain',
  registry: 'my-registry',
};

it('every field reaches the resource, which takes it', () => {
  const spec = specOf(EVERYTHING);
  expect(spec).toMatchObject({
    gpu: { product: 'H100', count: 2, memoryMb: 80_000, isolation: 'whole' },
    env: [
      { name: 'HF_TOKEN', value: 'secret' },
      { name: 'EMPTY', value: '' },
    ],
    ports: [
      { containerPort: 8000, protocol: 'TCP', name: 'http' },
      { containerPort: 8000, protocol: 'UDP' },
      { containerPort: 22, protocol: 'TCP' },
    ],
    command: ['vllm'],
    args: ['serve'],
    runtype: 'args',
    onStart: 'echo hello',
    maxPricePerHour: '2.49',
    maxDuration: '12h',
    idleTimeout: '1h30m',
    onExpiry: 'Delete',
    onGPUFailure: 'Restart',
    onNoCapacity: 'Queue',
    diskPolicy: 'Retain',
    imagePullSecrets: [{ name: 'my-registry' }],
  });
  expect(gpuInstanceSpecSchema.parse(spec)).toEqual(spec);
});

it('without them the resource is as before', () => {
  const nothing = {
    type: 'OnDemand',
    installMonitoring: false,
    powerState: 'Running',
    onNoCapacity: 'Fail',
    onExpiry: 'Stop',
    onGPUFailure: 'Keep',
    diskPolicy: 'Delete',
  };
  expect(specOf({})).toEqual(nothing);
  expect(specOf(Object.fromEntries(Object.keys(EVERYTHING).map((field) => [field, null])))).toEqual(nothing);
});

it.each([
  [{ env: { '1A': 'x' } }, ['env.1A']],
  [{ env: { ['A'.repeat(300)]: 'x' } }, [`env.${'A'.repeat(100)}`]],
  [{ env: { NVIDIA_VISIBLE_DEVICES: 'all' } }, ['env.NVIDIA_VISIBLE_DEVICES']],
  [{ env: { A: 'x'.repeat(32_769), B: 1 } }, ['env.A', 'env.B']],
  [{ env: { A: '\ud800' } }, ['env.A']],
  [{ env: Object.fromEntries(Array.from({ length: 129 }, (_, index) => [`A${index}`, ''])) }, ['env']],
  [{ env: ['A=b'] }, ['env']],
  [
    { ports: [{ container_port: 0 }, { container_port: 65_536 }] },
    ['ports[0].container_port', 'ports[1].container_port'],
  ],
  [{ ports: [{ container_port: 80 }, { container_port: 80, protocol: 'tcp' }] }, ['ports[1].container_port']],
  [{ ports: [{ container_port: 80, protocol: 'TCP' }] }, ['ports[0].protocol']],
  [{ ports: [{ container_port: 80, name: 'No' }] }, ['ports[0].name']],
  [{ ports: [{ container_port: 80, host_port: 80 }] }, ['ports[0].host_port']],
  [{ args: Array.from({ length: 65 }, () => 'a') }, ['args']],
  [{ command: ['a'.repeat(4097)] }, ['command[0]']],
  [{ command: ['\udc00'] }, ['command[0]']],
  [{ runtype: 'ssh', command: ['a'], args: ['b'] }, ['command', 'args']],
  [{ runtype: 'telnet', args: [] }, ['args']],
  [{ on_start: 'x'.repeat(65_537) }, ['on_start']],
  [{ max_duration: 'a while', idle_timeout: '1d' }, ['max_duration', 'idle_timeout']],
  [{ max_duration: 3600 }, ['max_duration']],
  [{ max_price_per_hour: '-1' }, ['max_price_per_hour']],
  [{ max_price_per_hour: 1.2 }, ['max_price_per_hour']],
  [{ on_gpu_failure: 'stop' }, ['on_gpu_failure']],
  [{ on_expiry: 'Stop', on_no_capacity: 'wait', disk_policy: 'keep' }, ['on_expiry', 'on_no_capacity', 'disk_policy']],
  [{ gpu: { count: 0, memory_mb: 0.5, isolation: 'shared' } }, ['gpu.count', 'gpu.memory_mb', 'gpu.isolation']],
  [{ gpu: { mig_profile: '1g.10gb', isolation: 'whole' } }, ['gpu.isolation']],
  [{ gpu: {}, ask_id: 1 }, ['gpu']],
  [{ registry: 'Not A Secret' }, ['registry']],
])('%j is refused field by field', (body, paths) => {
  expect(refusedFields(body, createInstanceSchema)).toEqual(paths);
});

it('a change names what changes, null clears it, and the rest stays', () => {
  const patchOf = (body: unknown) => toInstancePatch(parseBody(updateInstanceSchema, body), 0);
  expect(patchOf({ max_duration: '24h', idle_timeout: null, on_expiry: 'delete', ssh_key_ids: [1, 1, 2] })).toEqual({
    maxDuration: '24h',
    idleTimeout: null,
    onExpiry: 'Delete',
    sshKeyIds: [1, 2],
  });
  expect(patchOf({ ssh_key_ids: null, on_expiry: null })).toEqual({ sshKeyIds: null, onExpiry: 'Stop' });
  expect(patchOf({ max_price_per_hour: '1.20' })).toEqual({ maxPricePerHour: '1.20' });
  expect(patchOf({ max_price_per_hour: null })).toEqual({ maxPricePerHour: null });
  expect(patchOf({ on_gpu_failure: 'restart' })).toEqual({ onGPUFailure: 'Restart' });
  expect(patchOf({ on_gpu_failure: null })).toEqual({ onGPUFailure: 'Keep' });
  expect(patchOf({})).toEqual({});
  expect(refusedFields({ idle_timeout: '1d', env: {} }, updateInstanceSchema)).toEqual(['idle_timeout', 'env']);
});

it('the description has nothing that is for the API server alone', () => {
  expect(JSON.stringify(componentSchemas())).not.toContain('x-kubernetes');
});
