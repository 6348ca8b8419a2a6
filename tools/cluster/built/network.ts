import { platform } from 'node:os';
import { LocalFailure } from '../../lib/failure.ts';
import { run } from '../../lib/shell.ts';

/** The addresses of one cluster with a real node. They go with the link. */
export interface ClusterNetwork {
  /** Name of the link's end on the host; the other end is `eth0` in the cluster's namespace. */
  link: string;
  hostAddress: string;
  nodeAddress: string;
  podCidr: string;
  serviceCidr: string;
  /** The range of the addresses that kwok gives simulated pods. Nothing is routed there. */
  simulatedCidr: string;
}

const SLOTS = 256;

/** The network of a slot from 0 to 255; networks of different slots never overlap. */
export function networkOf(slot: number): ClusterNetwork {
  return {
    link: `berth${slot}`,
    hostAddress: `10.254.${slot}.1`,
    nodeAddress: `10.254.${slot}.2`,
    podCidr: `10.253.${slot}.0/24`,
    serviceCidr: `10.252.${slot}.0/24`,
    simulatedCidr: `10.251.${slot}.0/24`,
  };
}

/** A destination in CIDR or plain address form, as `ip -j route` prints it. */
export interface Route {
  dst: string;
}

/** The first slot, from the preferred one on, that overlaps no route; undefined when every slot does. */
export function freeSlot(preferred: number, routes: readonly Route[]): number | undefined {
  const taken = routes.filter(({ dst }) => dst !== 'default' && dst !== '0.0.0.0/0').map(({ dst }) => rangeOf(dst));
  for (let step = 0; step < SLOTS; step++) {
    const slot = (preferred + step) % SLOTS;
    const { hostAddress, podCidr, serviceCidr } = networkOf(slot);
    const ours = [`${hostAddress}/30`, podCidr, serviceCidr].map(rangeOf);
    if (!ours.some((range) => taken.some((other) => range.from <= other.to && other.from <= range.to))) return slot;
  }
  return undefined;
}

function rangeOf(cidr: string): { from: number; to: number } {
  const [address = '', bits = '32'] = cidr.split('/');
  const value = address.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0);
  const size = 2 ** (32 - Number(bits));
  const from = Math.floor(value / size) * size;
  return { from, to: from + size - 1 };
}

/** A slot whose addresses no route of this host uses. A folder gets the same slot while that one is free. */
export async function chooseSlot(stateFolder: string, after = 0): Promise<number> {
  // Elsewhere containers run in a virtual machine, which has routes of its own.
  if (platform() !== 'linux') return hashOf(stateFolder) % SLOTS;
  const { code, stdout, stderr } = await run('ip', ['-j', '-4', 'route', 'show', 'table', 'all']);
  if (code !== 0)
    throw new LocalFailure(`The routes of this host cannot be read: ${stderr.trim()}.`, 'Install iproute2.');
  const routes = stdout.trim() === '' ? [] : (JSON.parse(stdout) as Route[]);
  const slot = freeSlot((hashOf(stateFolder) + after) % SLOTS, routes);
  if (slot !== undefined) return slot;
  throw new LocalFailure(
    'Every address range of the local cluster (10.252.0.0/16 to 10.254.0.0/16) is already routed on this host.',
    'Stop other local clusters with `npm stop` in their checkouts, or start this one without root (simulated nodes only).',
  );
}

function hashOf(text: string): number {
  let hash = 0;
  for (const character of text) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) >>> 0;
  return hash;
}
