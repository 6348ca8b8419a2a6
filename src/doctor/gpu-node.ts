import type { Node } from '../kube/types.ts';

/** Labels of node feature discovery, with the class of the device or without, and of NVIDIA's GPU Operator. */
const LABELS = /^feature\.node\.kubernetes\.io\/pci-(?:03\d\d_)?10de\.present$|^nvidia\.com\/gpu\.present$/;
const RESOURCES = /^nvidia\.com\/(?:gpu|mig-)/;

/** Whether a node has GPUs of NVIDIA as far as its capacity or its labels tell: healthy or not, in a pool or in none. */
export function looksLikeGpuNode({ metadata, status }: Node): boolean {
  const amounts = Object.entries({ ...status?.allocatable, ...status?.capacity });
  if (amounts.some(([name, amount]) => RESOURCES.test(name) && amount !== '0')) return true;
  return Object.entries(metadata.labels ?? {}).some(([name, value]) => LABELS.test(name) && value === 'true');
}
