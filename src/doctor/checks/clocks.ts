import type { Lease } from '../../kube/types.ts';
import { check, named, firstOf, type Problem } from '../finding.ts';

/** That clocks may differ: the API server tells its own in whole seconds, and a kubelet's call may take ten of them. */
const MOST_MS = 11_000;
const SYNC = 'timedatectl timesync-status   # there; then start its time service';

/** How far the clock of the writer was before the API server's when the server took its last write, milliseconds. */
function aheadOf({ metadata, spec }: Lease): number | undefined {
  const written = metadata.managedFields
    ?.map(({ time }) => Date.parse(time ?? ''))
    .filter((time) => !Number.isNaN(time));
  const renewed = Date.parse(spec?.renewTime ?? '');
  if (written === undefined || written.length === 0 || Number.isNaN(renewed)) return undefined;
  return renewed - Math.max(...written);
}

function words(ms: number): string {
  const seconds = Math.round(Math.abs(ms) / 1000);
  return `${seconds} seconds ${ms > 0 ? 'ahead of' : 'behind'}`;
}

function ofMachine(ahead: number | undefined): Problem[] {
  if (ahead === undefined || Math.abs(ahead) <= MOST_MS) return [];
  return [
    {
      severity: 'warning',
      reason: 'ClockOfThisMachine',
      objects: [],
      message: `The clock of this machine is ${words(ahead)} the API server's.`,
      why: 'Times that you give, such as --expires of a key, mean other moments to the cluster.',
      remedy: SYNC,
    },
  ];
}

function ofWriters(leases: readonly Lease[], reason: 'ClockOfNode' | 'ClockOfLeader'): Problem[] {
  const off = leases
    .map((lease) => ({ lease, ahead: aheadOf(lease) ?? 0 }))
    .filter(({ ahead }) => Math.abs(ahead) > MOST_MS)
    .toSorted((a, b) => Math.abs(b.ahead) - Math.abs(a.ahead));
  const [worst] = off;
  if (worst === undefined) return [];
  const isNode = reason === 'ClockOfNode';
  const names = off.map(({ lease }) => (isNode ? lease.metadata.name : (lease.spec?.holderIdentity ?? '')));
  const who = isNode ? `node ${named(names)}` : `the controller ${named(names)}`;
  return [
    {
      severity: 'warning',
      reason,
      objects: isNode ? names.map((name) => `node/${name}`) : [],
      message: `The clock of ${who} is not the API server's: ${firstOf(names.slice(0, 1)).words} is ${words(worst.ahead)} it.`,
      why: isNode
        ? 'The kubelet says when a container began and ended, and bills follow it.'
        : 'The controller writes when starts end, and bills and idle times follow it.',
      remedy: SYNC,
    },
  ];
}

export const clocks = check({
  name: 'clocks',
  title: 'Clocks agree',
  needs: ['nodeLeases', 'leases', 'nodes'],
  find({ nodeLeases, leases, nodes }, { ahead, namespace }) {
    const there = new Set(nodes.map(({ metadata }) => metadata.name));
    return [
      ...ofMachine(ahead),
      ...ofWriters(
        nodeLeases.filter(({ metadata }) => there.has(metadata.name)),
        'ClockOfNode',
      ),
      ...ofWriters(
        leases.filter(({ metadata }) => metadata.namespace === namespace),
        'ClockOfLeader',
      ),
    ];
  },
});
