import { compareText } from '../../lib/compare.ts';
import type { Node } from '../../kube/types.ts';
import type { Isolation } from '../../resources/instances/gpu-instance.ts';
import { fractionOf } from '../../resources/money.ts';
import { type Amounts, toAmounts } from '../amounts.ts';

/** One extended resource of a node that can be rented. */
export interface GpuResource {
  /** Name of the extended resource, for example nvidia.com/gpu or nvidia.com/mig-1g.10gb. */
  resourceName: string;
  /** Product as the labels name it: GPU feature discovery with its -MIG- and -SHARED endings. */
  product: string;
  /** Memory of one piece in MiB; 0 when the labels do not say. */
  memoryMb: number;
  isolation: Isolation;
  migProfile: string | undefined;
  /** Number of pieces that the node has. */
  total: number;
  /** What part of a whole GPU one piece is, exactly: 1, 1/7, 1/4. */
  share: string;
  /** The same as a number. It gets the same part of the node's CPU and memory. */
  weight: number;
}

export type Labels = Readonly<Record<string, string>>;

/** What a node says of its GPUs. `capacity`: healthy or not. */
export interface GpuSource {
  readonly labels: Labels;
  readonly capacity: Amounts;
}

export interface Driver {
  /** The empty string when the node does not say. */
  driverVersion: string;
  /** Newest CUDA that the driver runs; the empty string when the node does not say. */
  cudaVersion: string;
}

/** How one maker's device plugin and labels tell of GPUs. */
export interface Maker {
  /** Names of whole GPUs as extended resources. Taints of these keys are tolerated. */
  readonly resourceNames: readonly string[];
  /** Whether a resource is GPUs, for rent or out of service. */
  readonly owns: (resourceName: string, labels: Labels) => boolean;
  /** What there is for rent of a resource; undefined for one that is no GPU. `total` is above 0. */
  readonly describe: (source: GpuSource, resourceName: string, total: number) => GpuResource | undefined;
  /** Product of a whole GPU. */
  readonly productOf: (labels: Labels) => string;
  readonly driverOf: (labels: Labels) => Driver;
}

/** GPUs and MIG slices. The device plugin of NVIDIA has resources for other devices too. */
const GPUS = /^nvidia\.com\/(?:gpu|mig-)/;
const MIG_RESOURCE = /^nvidia\.com\/(mig-(\d+g\.\d+gb(?:[.-](?:me(?:\.all)?|gfx))?))(?:\.shared)?$/;
const WHOLE_RESOURCE = /^nvidia\.com\/gpu(?:\.shared)?$/;
const MIG_PRODUCT = /-MIG-(\d+g\.\d+gb(?:[.-](?:me(?:\.all)?|gfx))?)(?:-SHARED)?$/;
/** Compute slices of a GPU in MIG mode, for products that have not seven: NVIDIA's MIG user guide, "Supported MIG profiles". */
const MIG_SLICES: readonly (readonly [product: RegExp, slices: number])[] = [
  [/-(?:A30|RTX-PRO-6000)(?:-|$)/, 4],
  [/-RTX-PRO-4500(?:-|$)/, 2],
];
const MOST_MIG_SLICES = 7;

/** A label as a positive number; 0 for any other text and without the label. */
export function numberLabel(labels: Labels, name: string): number {
  const value = Number(labels[name]);
  return Number.isFinite(value) && value > 0 ? value : 0;
}

function isShared(labels: Labels, prefix: string, names: { resource: string; product: string }): boolean {
  if (names.resource.endsWith('.shared') || names.product.endsWith('-SHARED')) return true;
  const strategy = labels[`${prefix}.sharing-strategy`];
  if (strategy !== undefined) return strategy !== 'none' && strategy !== '';
  return numberLabel(labels, `${prefix}.replicas`) > 1;
}

function productOf(labels: Labels): string {
  return labels['nvidia.com/gpu.product'] ?? 'GPU';
}

function migSlicesOf(product: string): number {
  return MIG_SLICES.find(([pattern]) => pattern.test(product))?.[1] ?? MOST_MIG_SLICES;
}

/** What part of a whole GPU a piece of so many compute slices is, with so many replicas of it. */
function shareOf(slices: number, pieces: number): Pick<GpuResource, 'share' | 'weight'> {
  return { share: slices === pieces ? '1' : `${slices}/${pieces}`, weight: slices / pieces };
}

/** MIG slices of one profile, such as 1g.10gb, of a product; undefined for a text that is no profile. */
export function migSlices(
  product: string,
  profile: string,
  resource: Pick<GpuResource, 'resourceName' | 'memoryMb' | 'total'>,
): GpuResource | undefined {
  // The driver of Dynamic Resource Allocation writes 1g.10gb+me, and the device plugin 1g.10gb.me.
  const migProfile = profile.replaceAll('+', '.');
  const name = `${product}-MIG-${migProfile}`;
  if (!MIG_PRODUCT.test(name)) return undefined;
  const share = shareOf(Number.parseInt(migProfile, 10), migSlicesOf(product));
  return { ...resource, product: name, isolation: 'mig', migProfile, ...share };
}

/** Memory of one piece in MiB. MPS gives each replica an equal part, and time-slicing all of it to each. */
function memoryOf(labels: Labels, prefix: string, replicas: number): number {
  const memory = numberLabel(labels, `${prefix}.memory`);
  return labels[`${prefix}.sharing-strategy`] === 'mps' ? Math.floor(memory / replicas) : memory;
}

function describe({ labels }: GpuSource, resourceName: string, total: number): GpuResource | undefined {
  const mixed = MIG_RESOURCE.exec(resourceName);
  if (!mixed && !WHOLE_RESOURCE.test(resourceName)) return undefined;
  const prefix = mixed ? `nvidia.com/${mixed[1]}` : 'nvidia.com/gpu';
  const base = productOf(labels);
  const product = labels[`${prefix}.product`] ?? (mixed ? `${base}-MIG-${mixed[2]}` : base);
  const shared = isShared(labels, prefix, { resource: resourceName, product });
  const migProfile = mixed?.[2] ?? MIG_PRODUCT.exec(product)?.[1];
  // A layout that the strategy `single` cannot tell, or compute instances that share the memory of their slice.
  if (migProfile === undefined && product.includes('-MIG-')) return undefined;
  const replicas = shared ? Math.max(1, numberLabel(labels, `${prefix}.replicas`)) : 1;
  const slices = migProfile === undefined ? 1 : Number.parseInt(migProfile, 10);
  const pieces = (migProfile === undefined ? 1 : migSlicesOf(product)) * replicas;
  return {
    resourceName,
    product,
    memoryMb: memoryOf(labels, prefix, replicas),
    isolation: shared ? 'time_sliced' : migProfile === undefined ? 'whole' : 'mig',
    migProfile,
    total,
    ...shareOf(slices, pieces),
  };
}

// The labels of feature discovery before version 0.15.
function joinParts(labels: Labels, names: readonly string[]): string {
  const parts = names.map((name) => labels[`nvidia.com/cuda.${name}`]);
  return parts.filter((part) => part !== undefined && part !== '').join('.');
}

function driver(labels: Labels): Driver {
  return {
    driverVersion:
      labels['nvidia.com/cuda.driver-version.full'] ??
      joinParts(labels, ['driver.major', 'driver.minor', 'driver.rev']),
    cudaVersion:
      labels['nvidia.com/cuda.runtime-version.full'] ?? joinParts(labels, ['runtime.major', 'runtime.minor']),
  };
}

/**
 * Whole GPUs, MIG slices (strategy single keeps nvidia.com/gpu, mixed has a resource per profile), and replicas of
 * time-slicing and MPS, renamed or not. Follows NVIDIA/k8s-device-plugin docs/gpu-feature-discovery/README.md.
 */
export const NVIDIA: Maker = {
  resourceNames: ['nvidia.com/gpu'],
  owns: (resourceName) => GPUS.test(resourceName),
  describe,
  productOf,
  driverOf: driver,
};

/** What a node has for rent, by resource name. */
export function gpuResourcesOf(node: Node, maker: Maker = NVIDIA): GpuResource[] {
  const source = { labels: node.metadata.labels ?? {}, capacity: toAmounts(node.status?.capacity) };
  const found: GpuResource[] = [];
  for (const [name, total] of Object.entries(toAmounts(node.status?.allocatable))) {
    const resource = total > 0 && maker.owns(name, source.labels) ? maker.describe(source, name, total) : undefined;
    if (resource) found.push(resource);
  }
  return found.toSorted((a, b) => compareText(a.resourceName, b.resourceName));
}

/** Versions of the node's driver and of the newest CUDA it runs. */
export function driverOf(node: Node, maker: Maker = NVIDIA): Driver {
  return maker.driverOf(node.metadata.labels ?? {});
}

/** A resource of which every piece is one GPU. */
export function wholeGpus(resource: Pick<GpuResource, 'resourceName' | 'product' | 'memoryMb' | 'total'>): GpuResource {
  return { ...resource, isolation: 'whole', migProfile: undefined, share: '1', weight: 1 };
}

/** A resource of which every piece is such a part of a GPU, and programs that share it are not kept apart. */
export function sharedGpus(resource: Parameters<typeof wholeGpus>[0], share: string): GpuResource {
  const product = `${resource.product}-SHARED`;
  return { ...wholeGpus({ ...resource, product }), isolation: 'time_sliced', share, weight: fractionOf(share) };
}
