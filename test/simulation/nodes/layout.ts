import { GPUS } from './amounts.ts';

/** How a device plugin gives out the GPUs of its node. */
type Layout =
  | { kind: 'whole' }
  | { kind: 'mig'; profile: string; perGpu: number; strategy: 'mixed' | 'single'; onlyIdle?: boolean }
  | { kind: 'shared'; replicas: number };

/** Such as operators write them into the configurations of the MIG manager and of the device plugin. */
export const LAYOUTS = {
  whole: { kind: 'whole' },
  'all-3g.40gb': { kind: 'mig', profile: '3g.40gb', perGpu: 2, strategy: 'mixed' },
  'all-1g.10gb': { kind: 'mig', profile: '1g.10gb', perGpu: 7, strategy: 'mixed' },
  'single-3g.40gb': { kind: 'mig', profile: '3g.40gb', perGpu: 2, strategy: 'single' },
  // No program is ended for it: a GPU that one uses stays as it is.
  'idle-3g.40gb': { kind: 'mig', profile: '3g.40gb', perGpu: 2, strategy: 'mixed', onlyIdle: true },
  'shared-2': { kind: 'shared', replicas: 2 },
  'shared-4': { kind: 'shared', replicas: 4 },
} as const satisfies Record<string, Layout>;

export type LayoutName = keyof typeof LAYOUTS;

/** Compute slices of a GPU in MIG mode. */
const SLICES = 7;

/** One device of a device plugin: a GPU, a partition of one, or one of its replicas. */
export interface Piece {
  id: string;
  /** UUID of the GPU that it is of. */
  gpu: string;
  resourceName: string;
  product: string;
  /** Those of one kind are beside each other on a GPU. */
  kind: string;
  /** What part of a GPU it is, as a bill says it. */
  share: string;
  /** How many of a GPU may be in use at once. */
  most: number;
}

export function wholePiece(gpu: string, product: string): Piece {
  return { id: gpu, gpu, resourceName: GPUS, product, kind: 'whole', share: '1', most: 1 };
}

/** The devices of a GPU under a layout. */
export function piecesOf(name: LayoutName, gpu: string, product: string): Piece[] {
  const layout: Layout = LAYOUTS[name];
  if (layout.kind === 'whole') return [wholePiece(gpu, product)];
  if (layout.kind === 'shared') {
    const { replicas } = layout;
    const common = { gpu, resourceName: GPUS, product: `${product}-SHARED`, kind: 'shared' };
    return Array.from({ length: replicas }, (_, index) => ({
      ...common,
      id: `${gpu}::${index}`,
      share: `1/${replicas}`,
      most: replicas,
    }));
  }
  const { profile, perGpu, strategy } = layout;
  const resourceName = strategy === 'single' ? GPUS : `nvidia.com/mig-${profile}`;
  const common = { gpu, resourceName, product: `${product}-MIG-${profile}`, kind: `mig-${profile}` };
  return Array.from({ length: perGpu }, (_, index) => ({
    ...common,
    id: `MIG-${gpu}-${profile}-${index}`,
    share: `${Number.parseInt(profile, 10)}/${SLICES}`,
    most: perGpu,
  }));
}

function memoryOf(profile: string): string {
  return profile === '3g.40gb' ? '40448' : '9984';
}

/** What GPU feature discovery says of them; null: nothing. */
export function labelsOf(name: LayoutName, product: string, gpus: number): Record<string, string | null> {
  const layout: Layout = LAYOUTS[name];
  const [piece] = piecesOf(name, '', product);
  const slices = layout.kind === 'mig' && layout.strategy === 'single' ? layout : undefined;
  const mixed = layout.kind === 'mig' && slices === undefined ? layout : undefined;
  const labels: Record<string, string | null> = {
    'nvidia.com/gpu.present': 'true',
    'nvidia.com/gpu.product': mixed === undefined ? (piece?.product ?? product) : product,
    'nvidia.com/gpu.count': String(gpus * (slices?.perGpu ?? 1)),
    'nvidia.com/gpu.memory': slices === undefined ? '81559' : memoryOf(slices.profile),
    'nvidia.com/gpu.replicas': layout.kind === 'shared' ? String(layout.replicas) : '1',
    'nvidia.com/gpu.sharing-strategy': layout.kind === 'shared' ? 'time-slicing' : 'none',
    'nvidia.com/mig.strategy': slices === undefined ? 'mixed' : 'single',
  };
  for (const other of Object.values<Layout>(LAYOUTS)) {
    if (other.kind !== 'mig') continue;
    const { profile } = other;
    const isThere = mixed?.profile === profile;
    labels[`nvidia.com/mig-${profile}.product`] = isThere ? `${product}-MIG-${profile}` : null;
    labels[`nvidia.com/mig-${profile}.memory`] = isThere ? memoryOf(profile) : null;
    labels[`nvidia.com/mig-${profile}.replicas`] = isThere ? '1' : null;
  }
  return labels;
}
