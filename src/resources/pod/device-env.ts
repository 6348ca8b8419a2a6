/**
 * Names of variables that container runtimes and their hooks act on before the program starts, outside of the container
 * and with the rights of the node. With them a pod would choose its own devices, drivers or MPS server.
 *
 * NVIDIA_*: NVIDIA/nvidia-container-toolkit internal/config/image (VISIBLE_DEVICES, DRIVER_CAPABILITIES, IMEX_CHANNELS,
 * MIG_*, REQUIRE_*, DISABLE_REQUIRE) and internal/modifier/cdi.go (GDS, MOFED, GDRCOPY, NVSWITCH); new releases add
 * others. CUDA_VERSION: to that toolkit a container that has it and no NVIDIA_REQUIRE_CUDA asks for all GPUs.
 * DOCKER_RESOURCE_*: its option swarm-resource. CUDA_MPS_*: NVIDIA/k8s-device-plugin cmd/mps-control-daemon.
 * The others: ROCm/container-toolkit, HabanaAI/habana-container-runtime (also _MODULES), Ascend/ascend-docker-runtime,
 * aws-neuron's OCI hook, and the toolkit of Moore Threads. A pool may name the resource of any maker, so every other name of
 * this form is refused too. What the loader of the container reads, such as LD_PRELOAD, is the tenant's own.
 */
export const DEVICE_ENV =
  /^(NVIDIA_.*|CUDA_MPS_.*|CUDA_VERSION|DOCKER_RESOURCE_.*|MTHREADS_.*|ASCEND_(ALLOW_LINK|MOUNTS|RUNTIME_OPTIONS|VNPU_SPECS)|(AMD|ASCEND|AWS_NEURON|HABANA)_VISIBLE_.*|[A-Z0-9_]+_VISIBLE_(CARDS|DEVICES|MODULES))$/;

/**
 * Names that look like these and that only programs read: a key of NVIDIA's web API, a switch of cuBLAS, and those by which
 * CUDA, HIP, ROCm, OpenCL, CANN and MUSA choose among the devices that the container has.
 */
export const HARMLESS_ENV: readonly string[] = [
  'NVIDIA_API_KEY',
  'NVIDIA_TF32_OVERRIDE',
  'CUDA_VISIBLE_DEVICES',
  'HIP_VISIBLE_DEVICES',
  'ROCR_VISIBLE_DEVICES',
  'GPU_VISIBLE_DEVICES',
  'ASCEND_RT_VISIBLE_DEVICES',
  'MUSA_VISIBLE_DEVICES',
];

/** Why a variable is refused, and what to do. */
export const DEVICE_ENV_REFUSAL =
  'the container runtime of the node reads it and could open devices that are not rented. Remove it. The instance gets its GPUs without it, and CUDA_VISIBLE_DEVICES chooses among them';

/** Whether a runtime or one of its hooks would act on a variable of this name. */
export function choosesDevices(name: string): boolean {
  return DEVICE_ENV.test(name) && !HARMLESS_ENV.includes(name);
}

/**
 * Devices that the toolkit opens for every container that has a GPU and asks for them, and an image may ask: NVIDIA_MOFED
 * opens RDMA, which no network policy sees, NVIDIA_NVSWITCH the switches between the GPUs of all tenants. A value in the
 * pod wins over the image.
 */
export const CLOSED_DEVICES: readonly { name: string; value: string }[] = [
  'NVIDIA_GDS',
  'NVIDIA_GDRCOPY',
  'NVIDIA_MOFED',
  'NVIDIA_NVSWITCH',
].map((name) => ({ name, value: 'disabled' }));
