import { compareText } from '../../lib/compare.ts';
import type { Node } from '../../kube/types.ts';
import type { Isolation } from '../../resources/instances/gpu-instance.ts';
import { toAmounts } from '../amounts.ts';

/** One extended resource of a node that can be rented. */
export interface GpuResource {
  /** Name of the extended resource, for example nvidia.com/gpu or nvidia.com/mig-1g.10gb. */
  resourceName: string;
  /** Product as GPU feature discovery names it, with its -MIG- and -SHARED endings. */
  product: string;
  /** Memory of one piece in MiB; 0 when the labels do not say. */
  memoryMb: number;
  isolation: Isolation;
  migProfile: string | undefined;
  /** Number of pieces that the node has. */
  total: number;
  /** What part of a whole GPU one piece is. It gets the same part of the node's CPU and memory. */
  weight: number;
}

type Labels = Readonly<Record<string, string>>;

const MIG_RESOURCE = /^nvidia\.com\/(mig-(\d+g\.\d+gb(?:\.me)?))(?:\.shared)?$/;
const WHOLE_RESOURCE = /^nvidia\.com\/gpu(?:\.shared)?$/;
const MIG_PRODUCT = /-MIG-(\d+g\.\d+gb(?:\.me)?)/;
// Compute slices of a GPU in MIG mode.
const MIG_SLICES = 7;

function numberLabel(labels: Labels, name: string): number {
  const value = Number(labels[name]);
  return Number.isFinite(value) && value > 0 ? value : 0;
}

function isShared(labels: Labels, prefix: string, names: { resource: string; product: string }): boolean {
  if (names.resource.endsWith('.shared') || names.product.endsWith('-SHARED')) return true;
  const strategy = labels[`${prefix}.sharing-strategy`];
  if (strategy !== undefined) return strategy !== 'none' && strategy !== '';
  return numberLabel(labels, `${prefix}.replicas`) > 1;
}

function describe(labels: Labels, resourceName: string, total: number): GpuResource | undefined {
  const mixed = MIG_RESOURCE.exec(resourceName);
  if (!mixed && !WHOLE_RESOURCE.test(resourceName)) return undefined;
  const prefix = mixed ? `nvidia.com/${mixed[1]}` : 'nvidia.com/gpu';
  const base = labels['nvidia.com/gpu.product'] ?? 'GPU';
  const product = labels[`${prefix}.product`] ?? (mixed ? `${base}-MIG-${mixed[2]}` : base);
  const shared = isShared(labels, prefix, { resource: resourceName, product });
  const migProfile = mixed?.[2] ?? MIG_PRODUCT.exec(product)?.[1];
  const replicas = shared ? Math.max(1, numberLabel(labels, `${prefix}.replicas`)) : 1;
  const slice = migProfile === undefined ? 1 : Number.parseInt(migProfile, 10) / MIG_SLICES;
  return {
    resourceName,
    product,
    memoryMb: numberLabel(labels, `${prefix}.memory`),
    isolation: shared ? 'time_sliced' : migProfile === undefined ? 'whole' : 'mig',
    migProfile,
    total,
    weight: slice / replicas,
  };
}

/**
 * What a node has for rent, by resource name: whole GPUs, MIG slices (strategy single keeps nvidia.com/gpu, mixed has a
 * resource per profile), and replicas of time-slicing and MPS, renamed or not. Follows NVIDIA/k8s-device-plugin
 * docs/gpu-feature-discovery/README.md.
 */
export function gpuResourcesOf(node: Node): GpuResource[] {
  const labels = node.metadata.labels ?? {};
  const found: GpuResource[] = [];
  for (const [name, total] of Object.entries(toAmounts(node.status?.allocatable))) {
    const resource = total > 0 ? describe(labels, name, total) : undefined;
    if (resource) found.push(resource);
  }
  return found.toSorted((a, b) => compareText(a.resourceName, b.resourceName));
}

// The labels of feature discovery before version 0.15.
function joinParts(labels: Labels, names: readonly string[]): string {
  const parts = names.map((name) => labels[`nvidia.com/cuda.${name}`]);
  return parts.filter((part) => part !== undefined && part !== '').join('.');
}

/** Versions of the node's driver and of the newest CUDA it runs; the empty string when the node does not say. */
export function driverOf(node: Node): { driverVersion: string; cudaVersion: string } {
  const labels = node.metadata.labels ?? {};
  return {
    driverVersion:
      labels['nvidia.com/cuda.driver-version.full'] ??
      joinParts(labels, ['driver.major', 'driver.minor', 'driver.rev']),
    cudaVersion:
      labels['nvidia.com/cuda.runtime-version.full'] ?? joinParts(labels, ['runtime.major', 'runtime.minor']),
  };
}
