import type { NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from '../../kube/network-policy.ts';
import { type LabelSelector, selects } from '../../kube/selector.ts';
import { common, type IpRange, isCovered, rangeOf } from '../../lib/ip-range.ts';
import { behindNat64 } from '../../lib/ip-network.ts';
import { MONITOR_LABEL } from '../../resources/pod/monitor.ts';
import { INSTANCE_LABEL, INSTANCE_UID_LABEL } from '../../resources/pod/owner.ts';
import { TENANT_LABEL } from '../../resources/tenants/tenant-policy.ts';

export const DIRECTIONS = ['Ingress', 'Egress'] as const;
export type Direction = (typeof DIRECTIONS)[number];

/** Something that instances must not reach, or that must not reach them. */
export interface Closed {
  /** As in: the metadata service, node gpu-0. */
  what: string;
  /** As it is written. */
  address: string;
  range: IpRange;
  /** TCP ports; undefined for any but those of name resolution. */
  ports?: readonly number[];
}

/** What a rule of a policy lets through although it should be closed. */
export interface Opening {
  direction: Direction;
  /** `any`: every address, or every pod. `tenants`: the pods of other tenants, by their labels. */
  to: 'any' | 'tenants' | readonly Closed[];
  /** The ports of the rule; undefined for all. */
  ports: string | undefined;
  /** Whether it is of ports one by one, and of no range or whole protocol. */
  isNarrow: boolean;
}

/** As a pod of an instance has them, whatever its name. A selector that asks for any other label does not take each. */
export const LABELS_OF_PODS = {
  'app.kubernetes.io/managed-by': 'berth',
  [INSTANCE_LABEL]: 'any',
  [INSTANCE_UID_LABEL]: 'any',
};

/** Those that each pod has, with a value of its own. */
const OPEN_LABELS: ReadonlySet<string> = new Set([INSTANCE_LABEL, INSTANCE_UID_LABEL]);

/** As the namespace of some other tenant has them. */
const OTHER_TENANT = {
  'kubernetes.io/metadata.name': 'some-other-tenant',
  [TENANT_LABEL]: 'true',
  'pod-security.kubernetes.io/enforce': 'baseline',
};

/** Name resolution, on OpenShift too. */
const DNS_PORTS = new Set<number | string>([53, 5353, 'dns', 'dns-tcp']);

export function closedAddress(what: string, address: string, ports?: readonly number[]): Closed[] {
  const range = rangeOf(address);
  return range === undefined ? [] : [{ what, address, range, ...(ports !== undefined && { ports }) }];
}

/** By IPv4: AWS, Azure, Google, OCI and others on the first, then Azure's wire server, Alibaba, containers and pods of AWS. */
const METADATA_IPV4: readonly (readonly [address: string, ports: readonly number[]])[] = [
  ['169.254.169.254', [80]],
  ['168.63.129.16', [80, 32_526]],
  ['100.100.100.200', [80]],
  ['169.254.170.2', [80]],
  ['169.254.170.23', [80]],
];

/** Where clouds tell a machine who it is, and give it passwords. IPv6 gets to those of IPv4 by NAT64. */
export const METADATA_SERVICES: readonly Closed[] = [
  ...METADATA_IPV4,
  ...['fd00:ec2::254', 'fd00:ec2::23', 'fd20:ce::254'].map((address) => [address, [80]] as const),
  ...METADATA_IPV4.flatMap(([address, ports]) => behindNat64(address).map((one) => [one, ports] as const)),
].flatMap(([address, ports]) => closedAddress('the metadata service', address, ports));

/** Where pods are in most clusters. */
export const PRIVATE_NETWORKS: readonly Closed[] = [
  '10.0.0.0/8',
  '100.64.0.0/10',
  '172.16.0.0/12',
  '192.168.0.0/16',
  'fc00::/7',
].flatMap((network) => closedAddress('private networks', network));

function typesOf({ spec }: NetworkPolicy): readonly string[] {
  return spec?.policyTypes ?? (spec?.egress === undefined ? ['Ingress'] : ['Ingress', 'Egress']);
}

/** Whether a policy closes every pod of an instance in its namespace to what it does not name. */
export function closes(policy: NetworkPolicy, direction: Direction): boolean {
  return typesOf(policy).includes(direction) && takesEach(policy.spec?.podSelector);
}

/** Whether a selector takes the pod of each instance: it leaves out none by a label that differs from pod to pod. */
function takesEach(selector: LabelSelector = {}): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector;
  const asksForOne =
    Object.keys(matchLabels).some((key) => OPEN_LABELS.has(key)) ||
    matchExpressions.some(
      ({ key, operator }) => key === MONITOR_LABEL || (OPEN_LABELS.has(key) && operator !== 'Exists'),
    );
  return !asksForOne && selects(selector, LABELS_OF_PODS);
}

/** Whether a selector takes the pod of some instance. Labels that differ from pod to pod may be what it asks for. */
function mayTake({ matchLabels = {}, matchExpressions = [] }: LabelSelector = {}): boolean {
  return selects(
    {
      matchLabels: Object.fromEntries(
        Object.entries(matchLabels).filter(([key]) => !OPEN_LABELS.has(key) && key !== MONITOR_LABEL),
      ),
      matchExpressions: matchExpressions.filter(
        ({ key, operator }) => key !== MONITOR_LABEL && (!OPEN_LABELS.has(key) || operator === 'DoesNotExist'),
      ),
    },
    LABELS_OF_PODS,
  );
}

/** Whether ports of a rule take connections to one of these by TCP. Names are of ports of pods. */
function takesPort(ports: readonly NetworkPolicyPort[] | undefined, wanted: readonly number[] | undefined): boolean {
  if (ports === undefined || ports.length === 0) return true;
  return ports.some(({ protocol = 'TCP', port, endPort }) => {
    if (port === undefined) return wanted === undefined || protocol === 'TCP';
    if (wanted === undefined) return endPort !== undefined || !DNS_PORTS.has(port);
    if (protocol !== 'TCP' || typeof port === 'string') return false;
    return wanted.some((one) => one >= port && one <= (endPort ?? port));
  });
}

function areNarrow(ports: readonly NetworkPolicyPort[] = []): boolean {
  return ports.length > 0 && ports.every(({ port, endPort = port }) => port !== undefined && endPort === port);
}

function portsOf(ports: readonly NetworkPolicyPort[] | undefined): string | undefined {
  if (ports === undefined || ports.length === 0) return undefined;
  return ports
    .map(({ protocol = 'TCP', port, endPort }) => {
      const which = port === undefined ? 'all' : `${port}${endPort === undefined ? '' : `-${endPort}`}`;
      return `${protocol} ${which}`;
    })
    .join(', ');
}

function isReached({ range }: Closed, { cidr, except = [] }: NonNullable<NetworkPolicyPeer['ipBlock']>): boolean {
  const block = rangeOf(cidr);
  // Kubernetes takes other spellings too, such as zeros before a number. Nothing says how the network plugin reads them.
  if (block === undefined) return true;
  const reached = common(range, block);
  return (
    reached !== undefined &&
    !isCovered(
      reached,
      except.map(rangeOf).filter((one) => one !== undefined),
    )
  );
}

function openingsOfRule(
  direction: Direction,
  peers: readonly NetworkPolicyPeer[] | undefined,
  ports: readonly NetworkPolicyPort[] | undefined,
  closed: readonly Closed[],
): Opening[] {
  // Out, name resolution is open. In, no port is.
  const takes = (wanted: Closed['ports']): boolean => direction === 'Ingress' || takesPort(ports, wanted);
  const by = closed.filter((one) => takes(one.ports));
  const rule = { direction, ports: portsOf(ports), isNarrow: areNarrow(ports) };
  const isAny = peers === undefined || peers.length === 0;
  if (isAny) return by.length > 0 || takes(undefined) ? [{ ...rule, to: 'any' }] : [];
  const reached = by.filter((one) => peers.some(({ ipBlock }) => ipBlock !== undefined && isReached(one, ipBlock)));
  const isToTenants = peers.some(
    ({ namespaceSelector, podSelector }) =>
      namespaceSelector !== undefined && selects(namespaceSelector, OTHER_TENANT) && mayTake(podSelector),
  );
  return [
    ...(isToTenants && takes(undefined) ? [{ ...rule, to: 'tenants' as const }] : []),
    ...(reached.length > 0 ? [{ ...rule, to: reached }] : []),
  ];
}

/**
 * What the rules of a policy let through to and from pods of instances in its namespace, although it should be closed.
 * Policies add up, so it is open whatever the others say.
 * @param closed by direction: where pods are from which nothing may come in, and addresses that nothing may go out to
 */
export function openingsOf(policy: NetworkPolicy, closed: Readonly<Record<Direction, readonly Closed[]>>): Opening[] {
  const { podSelector, ingress = [], egress = [] } = policy.spec ?? {};
  if (!mayTake(podSelector)) return [];
  const types = typesOf(policy);
  const inward = types.includes('Ingress') ? ingress : [];
  const outward = types.includes('Egress') ? egress : [];
  return [
    ...inward.flatMap(({ from, ports }) => openingsOfRule('Ingress', from, ports, closed.Ingress)),
    ...outward.flatMap(({ to, ports }) => openingsOfRule('Egress', to, ports, closed.Egress)),
  ];
}
