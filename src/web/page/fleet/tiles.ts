import type { FleetGpus, FleetNode, FleetRecord } from '../../../wire/records.ts';

/** Colours that tell tenants apart. Further tenants share the last one. */
export const MOST_COLOURS = 8;

/** What a GPU does: free, closed for now, with an instance or another pod, or broken. */
export interface Tile {
  kind: 'free' | 'closed' | 'tenant' | 'others' | 'unhealthy';
  /** Of a tenant: the number of its colour. */
  colour?: number;
  /** Of a tenant: the kubelet reports it as unhealthy. */
  isUnhealthy?: boolean;
  /** For the pointer. */
  title: string;
}

/** The number of the colour of each tenant. */
export type Colours = ReadonlyMap<string, number>;

/** The colour of each tenant with GPUs: those with most come first. */
export function coloursOf({ tenants }: FleetRecord): Colours {
  const holding = tenants.filter(({ gpus }) => gpus > 0);
  return new Map(holding.map(({ namespace }, at) => [namespace, Math.min(at, MOST_COLOURS)]));
}

function holderTiles(holder: FleetGpus['instances'][number], colours: Colours): Tile[] {
  const { id, namespace, state, type, gpu_count: count, unhealthy_gpus: unhealthy } = holder;
  const name = `${namespace}/${id}: ${state}${type === 1 ? ', interruptible' : ''}`;
  const tile: Tile = { kind: 'tenant', colour: colours.get(namespace) ?? MOST_COLOURS, title: name };
  return Array.from({ length: count }, (_, at) => {
    const gpu = unhealthy[at];
    return gpu === undefined ? tile : { ...tile, isUnhealthy: true, title: `${name}. GPU ${gpu} is unhealthy` };
  });
}

/**
 * One tile for each GPU of a kind. Which GPU an instance has the kubelet says with its health, from Kubernetes 1.36 on.
 * While an instance has an unhealthy one, the scheduler places one healthy GPU less.
 */
export function tilesOf(gpus: FleetGpus, node: FleetNode, colours: Colours): Tile[] {
  const many = (count: number, tile: Tile): Tile[] => Array.from({ length: count }, () => tile);
  const owned = gpus.instances.flatMap((one) => holderTiles(one, colours));
  const held = owned.filter(({ isUnhealthy }) => isUnhealthy).length;
  const unhealthy = Math.max(0, gpus.unhealthy - held);
  const withheld = Math.max(0, gpus.total - owned.length - gpus.others - gpus.free - unhealthy);
  const free: Tile =
    node.state === 'ready' ? { kind: 'free', title: 'Free' } : { kind: 'closed', title: node.message || 'Closed' };
  return [
    ...owned,
    ...many(gpus.others, { kind: 'others', title: 'A pod that is no instance' }),
    ...many(gpus.free, free),
    ...many(withheld, { kind: 'closed', title: 'Not for rent while an instance has a GPU that is unhealthy' }),
    ...many(unhealthy, {
      kind: 'unhealthy',
      title: 'Out of service: the device plugin says that it is unhealthy',
    }),
  ];
}

export interface Counts {
  /** By how they are shared: a card in slices is one GPU, and nobody says how many cards there are. */
  whole: number;
  mig: number;
  time_sliced: number;
  rented: number;
  others: number;
  free: number;
  closed: number;
  unhealthy: number;
}

const NONE: Counts = { whole: 0, mig: 0, time_sliced: 0, rented: 0, others: 0, free: 0, closed: 0, unhealthy: 0 };

/** How many GPUs the nodes have, and what becomes of them. */
export function countsOf(nodes: readonly FleetNode[]): Counts {
  const counts = { ...NONE };
  for (const { state, gpus } of nodes) {
    for (const { isolation, total, instances, others, free, unhealthy } of gpus) {
      counts[isolation] += total;
      counts.rented += instances.reduce((sum, one) => sum + one.gpu_count, 0);
      counts.others += others;
      counts.unhealthy += unhealthy;
      if (state === 'ready') counts.free += free;
      else counts.closed += free;
    }
  }
  return counts;
}

const NAMES = {
  whole: ['GPU', 'GPUs'],
  mig: ['MIG slice', 'MIG slices'],
  time_sliced: ['share of a time-sliced GPU', 'shares of time-sliced GPUs'],
} as const;

/** The same in words, for those who cannot see the tiles. */
export function inWords({ rented, others, free, closed, unhealthy, ...counts }: Counts): string {
  const said = (count: number): string => count.toLocaleString();
  const parts = [
    `${said(rented)} rented`,
    ...(others > 0 ? [`${said(others)} with other pods`] : []),
    `${said(free)} free`,
    ...(closed > 0 ? [`${said(closed)} on closed nodes`] : []),
    ...(unhealthy > 0 ? [`${said(unhealthy)} out of service`] : []),
  ];
  const amounts = (['whole', 'mig', 'time_sliced'] as const)
    .filter((kind) => counts[kind] > 0)
    .map((kind) => `${said(counts[kind])} ${NAMES[kind][counts[kind] === 1 ? 0 : 1]}`);
  return `${amounts.join(', ') || '0 GPUs'}: ${parts.join(', ')}`;
}

type Holder = FleetGpus['instances'][number];

/** Which devices an instance has. An api role of an earlier release, as in the midst of an upgrade, does not say. */
export function devicesOf({ devices = [] }: Pick<Partial<Holder>, 'devices'>): string {
  return devices.map(({ pool, device, uuid }) => uuid ?? `${pool}/${device}`).join(', ');
}
