import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { gpuInstanceSpecSchema } from '../../../src/resources/instances/gpu-instance.ts';
import { instanceTemplateSpecSchema } from '../../../src/resources/instance-template.ts';
import { choosesDevices, CLOSED_DEVICES, DEVICE_ENV, HARMLESS_ENV } from '../../../src/resources/pod/device-env.ts';

const ROOT = new URL('../../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8');

const CHOOSING = [
  'NVIDIA_VISIBLE_DEVICES',
  'NVIDIA_DRIVER_CAPABILITIES',
  'NVIDIA_MIG_CONFIG_DEVICES',
  'NVIDIA_MIG_MONITOR_DEVICES',
  'NVIDIA_IMEX_CHANNELS',
  'NVIDIA_REQUIRE_CUDA',
  'NVIDIA_DISABLE_REQUIRE',
  'NVIDIA_GDS',
  'NVIDIA_MOFED',
  'NVIDIA_NVSWITCH',
  'NVIDIA_GPU_MEMORY_LIMIT',
  'CUDA_VERSION',
  'CUDA_MPS_PIPE_DIRECTORY',
  'CUDA_MPS_ACTIVE_THREAD_PERCENTAGE',
  'DOCKER_RESOURCE_GPU',
  'AMD_VISIBLE_DEVICES',
  'ASCEND_VISIBLE_DEVICES',
  'AWS_NEURON_VISIBLE_DEVICES',
  'HABANA_VISIBLE_DEVICES',
  'HABANA_VISIBLE_MODULES',
  'MTHREADS_VISIBLE_DEVICES',
  'MTHREADS_DRIVER_CAPABILITIES',
  'ASCEND_RUNTIME_OPTIONS',
  'ASCEND_ALLOW_LINK',
  'ASCEND_MOUNTS',
  'METAX_VISIBLE_DEVICES',
  'CAMBRICON_VISIBLE_DEVICES',
  'ENFLAME_VISIBLE_DEVICES',
  'OF_A_NEW_MAKER_VISIBLE_CARDS',
];
// What only programs in the container read.
const ORDINARY = [
  'CUDA_VISIBLE_DEVICES',
  'CUDA_DEVICE_ORDER',
  'CUDA_HOME',
  'HIP_VISIBLE_DEVICES',
  'ROCR_VISIBLE_DEVICES',
  'ZE_AFFINITY_MASK',
  'NVIDIA_API_KEY',
  'NVIDIA_TF32_OVERRIDE',
  'NCCL_DEBUG',
  'ASCEND_RT_VISIBLE_DEVICES',
  'ASCEND_GLOBAL_LOG_LEVEL',
  'MUSA_VISIBLE_DEVICES',
  'NEURON_RT_VISIBLE_CORES',
  'LD_PRELOAD',
  'APP_VISIBLE_NAME',
  'nvidia_visible_devices',
];

describe.each([
  ['GPUInstance', gpuInstanceSpecSchema],
  ['InstanceTemplate', instanceTemplateSpecSchema],
])('the environment of a %s', (_kind, schema) => {
  test.each(CHOOSING)('may not have %s, and says why', (name) => {
    const { error } = schema.safeParse({ env: [{ name: 'A' }, { name, value: 'all' }] });
    expect(error?.issues[0]).toMatchObject({ path: ['env', 1, 'name'] });
    expect(error?.issues[0]?.message).toContain(`${name}: the container runtime of the node reads it`);
  });

  test.each(ORDINARY)('may have %s', (name) => {
    expect(schema.safeParse({ env: [{ name, value: '0' }] }).error).toBeUndefined();
  });
});

// The API server has its own copy of the names in the definitions, and so has the admission policy of the chart.
test.each([
  'crds/berth.dev_gpuinstances.yaml',
  'crds/berth.dev_instancetemplates.yaml',
  'charts/berth/templates/admission/pods.yaml',
])('%s has the same names', (path) => {
  const text = read(path).replaceAll(/\s+/g, ' ');
  expect(text).toContain(`matches("${DEVICE_ENV.source}")`);
  for (const name of HARMLESS_ENV) expect(text).toContain(`"${name}"`);
});

test('the policy of the chart allows the variables that close devices, with that value alone', () => {
  const text = read('charts/berth/templates/admission/pods.yaml');
  const names = CLOSED_DEVICES.map(({ name }) => `"${name}"`).join(', ');
  expect(text).toContain(`e.name in [${names}]`);
  expect(new Set(CLOSED_DEVICES.map(({ value }) => value))).toEqual(new Set(['disabled']));
  expect(CLOSED_DEVICES.every(({ name }) => choosesDevices(name))).toBe(true);
});
