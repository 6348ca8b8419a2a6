import type { Devices } from './labels.ts';

/**
 * Eight MI300X with the labels of ROCm's node labeller.
 * Source: ROCm/k8s-device-plugin, docs/user-guide/installation.md, and cmd/k8s-node-labeller/main.go.
 */
export const MI300X: Devices = {
  labels: {
    'feature.node.kubernetes.io/amd-gpu': 'true',
    'amd.com/gpu.cu-count': '304',
    'amd.com/gpu.device-id': '74a1',
    'amd.com/gpu.driver-version': '6.12.12',
    'amd.com/gpu.family': 'AI',
    'amd.com/gpu.product-name': 'AMD_Instinct_MI300X_OAM',
    'amd.com/gpu.simd-count': '1216',
    'amd.com/gpu.vram': '192G',
  },
  resources: { 'amd.com/gpu': '8' },
};

/**
 * Four Max 1550 with the labels that the rules of Intel's device plugins write. None tells the memory.
 * Source: intel/intel-device-plugins-for-kubernetes, deployments/nfd/overlays/node-feature-rules, and
 * cmd/gpu_plugin/README.md for the resources.
 */
export const MAX_1550: Devices = {
  labels: {
    'intel.feature.node.kubernetes.io/gpu': 'true',
    'gpu.intel.com/device-id.0380-0bd5.count': '4',
    'gpu.intel.com/device-id.0380-0bd5.present': 'true',
    'gpu.intel.com/device.count': '4',
    'gpu.intel.com/family': 'Max_Series',
    'gpu.intel.com/product': 'Max_1550',
  },
  resources: { 'gpu.intel.com/i915': '4', 'gpu.intel.com/monitoring': '1' },
};
