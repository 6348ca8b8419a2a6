import { BlockList, isIPv4 } from 'node:net';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { network } from '../../../src/doctor/checks/network.ts';
import type { Objects } from '../../../src/doctor/sources.ts';
import type { NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from '../../../src/kube/network-policy.ts';
import type { LabelSelector } from '../../../src/kube/selector.ts';
import { whyOpen } from '../../../src/inventory/network/words.ts';
import { common, rangeOf } from '../../../src/lib/ip-range.ts';
import { soundObjects } from '../../support/sound-installation.ts';

// Plays what NetworkPolicies let through, connection by connection, beside what the doctor says of them.

type Labels = Record<string, string>;

/** One end of a connection. `namespace`: labels of the namespace of a pod. */
interface End {
  ip: string;
  namespace?: Labels;
  pod?: Labels;
}

interface Connection {
  direction: 'Ingress' | 'Egress';
  remote: End;
  protocol: string;
  port: number;
}

function asks({ matchLabels = {}, matchExpressions = [] }: LabelSelector, labels: Labels): boolean {
  for (const [key, value] of Object.entries(matchLabels)) if (labels[key] !== value) return false;
  for (const { key, operator, values = [] } of matchExpressions) {
    const has = Object.hasOwn(labels, key);
    const isOne = has && values.includes(labels[key] ?? '');
    if (!{ In: isOne, NotIn: !isOne, Exists: has, DoesNotExist: !has }[operator]) return false;
  }
  return true;
}

const CIDRS = [
  '0.0.0.0/0',
  '::/0',
  '0.0.0.0/1',
  '128.0.0.0/1',
  '000.0.0.0/0',
  '::ffff:0.0.0.0/96',
  '::ffff:169.254.0.0/112',
  '10.0.0.0/8',
  '10.0.0.0/9',
  '010.244.0.0/24',
  '10.244.0.0/24',
  '10.244.0.0/25',
  '10.96.0.0/12',
  '192.168.0.0/16',
  '192.168.3.0/24',
  '192.168.3.4/32',
  '192.168.3.2/32',
  '169.254.0.0/16',
  '169.254.169.254/32',
  '168.63.129.16/32',
  '100.64.0.0/10',
  '100.100.100.200/32',
  '172.16.0.0/12',
  'fc00::/7',
  'fd00:10:244::/64',
  'fd00:ec2::/32',
  'fd20:ce::254/128',
  '2000::/3',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '64:ff9b::a9fe:a9fe/128',
  '64:ff9b:1::a9fe:0/112',
  '1.1.1.0/24',
];

/** A network as Go reads it: zeros before a number, and IPv4 in the words of IPv6. */
function listOf(cidr: string): { isFour: boolean; list: BlockList } {
  const [address = '', bits] = cidr.split('/');
  const isMapped = address.startsWith('::ffff:');
  const plain = (isMapped ? address.slice(7) : address).replaceAll(/(?<![\da-f:])0+(?=\d)/g, '');
  const isFour = isIPv4(plain);
  const list = new BlockList();
  list.addSubnet(plain, Number(bits) - (isMapped ? 96 : 0), isFour ? 'ipv4' : 'ipv6');
  return { isFour, list };
}

const LISTS = new Map(CIDRS.map((cidr) => [cidr, listOf(cidr)]));
function inNetwork(ip: string, cidr: string): boolean {
  if (ip === '') return false;
  const { isFour, list } = LISTS.get(cidr) ?? expect.unreachable();
  return isFour === isIPv4(ip) && list.check(ip, isFour ? 'ipv4' : 'ipv6');
}

function isPeer({ ipBlock, namespaceSelector, podSelector }: NetworkPolicyPeer, { ip, namespace, pod }: End): boolean {
  if (ipBlock !== undefined)
    return inNetwork(ip, ipBlock.cidr) && !(ipBlock.except ?? []).some((one) => inNetwork(ip, one));
  if (namespaceSelector === undefined || namespace === undefined || pod === undefined) return false;
  return asks(namespaceSelector, namespace) && asks(podSelector ?? {}, pod);
}

/** Pods give a name of a port to 8888 here. */
function isPort({ protocol = 'TCP', port, endPort }: NetworkPolicyPort, connection: Connection): boolean {
  if (protocol !== connection.protocol) return false;
  if (typeof port === 'string') return connection.port === 8888 && connection.remote.pod !== undefined;
  return port === undefined || (connection.port >= port && connection.port <= (endPort ?? port));
}

function lets(policies: readonly NetworkPolicy[], instance: Labels, connection: Connection): boolean {
  const { direction, remote } = connection;
  const taking = policies.filter(
    ({ spec }) => spec?.policyTypes?.includes(direction) && asks(spec.podSelector ?? {}, instance),
  );
  if (taking.length === 0) return true;
  const rules = taking.flatMap(({ spec }) =>
    direction === 'Ingress'
      ? (spec?.ingress ?? []).map(({ from, ports }) => ({ peers: from ?? [], ports: ports ?? [] }))
      : (spec?.egress ?? []).map(({ to, ports }) => ({ peers: to ?? [], ports: ports ?? [] })),
  );
  return rules.some(
    ({ peers, ports }) =>
      (peers.length === 0 || peers.some((peer) => isPeer(peer, remote))) &&
      (ports.length === 0 || ports.some((port) => isPort(port, connection))),
  );
}

const podOf = (name: string, monitored: boolean): Labels => ({
  'app.kubernetes.io/managed-by': 'berth',
  'berth.dev/instance': name,
  'berth.dev/instance-uid': `uid-${name}`,
  ...(monitored && { 'berth.dev/monitor': 'true' }),
});
const INSTANCES = [podOf('one', false), podOf('two', true), podOf('any', false)];
/** Of another tenant that no policy names: a rule for one namespace is the operator's word. */
const OTHER: Labels = { 'kubernetes.io/metadata.name': 'some-other-tenant', 'berth.dev/tenant': 'true' };

const isMapped = (cidr: string): boolean => cidr.startsWith('::ffff:');
const CIDR = fc.constantFrom(...CIDRS);
const LABEL = fc.constantFrom<string[]>(
  ['kubernetes.io/metadata.name', 'acme'],
  ['kubernetes.io/metadata.name', 'kube-system'],
  ['berth.dev/tenant', 'true'],
  ['team', 'red'],
);
const POD_LABEL = fc.constantFrom<string[]>(
  ['berth.dev/instance', 'one'],
  ['berth.dev/instance', 'any'],
  ['berth.dev/monitor', 'true'],
  ['app.kubernetes.io/managed-by', 'berth'],
  ['app', 'x'],
);
const OPERATOR = fc.constantFrom('In', 'NotIn', 'Exists', 'DoesNotExist');

function selector(label: fc.Arbitrary<string[]>): fc.Arbitrary<LabelSelector> {
  const matchLabels = label.map(([key = '', value = '']) => ({ matchLabels: { [key]: value } }));
  const matchExpressions = fc.tuple(label, OPERATOR).map(([[key = '', value = ''], operator]) => ({
    matchExpressions: [{ key, operator, ...(operator.endsWith('In') && { values: [value] }) }],
  }));
  return fc.oneof({ weight: 3, arbitrary: fc.constant({}) }, matchLabels, matchExpressions);
}

const PEER: fc.Arbitrary<NetworkPolicyPeer> = fc.oneof(
  // Kubernetes takes exceptions within the block only, in words of its own kind.
  fc.tuple(CIDR, fc.array(CIDR, { maxLength: 3 })).map(([cidr, all]) => ({
    ipBlock: { cidr, except: all.filter((one) => isMapped(one) === isMapped(cidr)) },
  })),
  fc.record({ podSelector: selector(POD_LABEL) }),
  fc.record({ namespaceSelector: selector(LABEL) }),
  fc.record({ namespaceSelector: selector(LABEL), podSelector: selector(POD_LABEL) }),
);
const PORT: fc.Arbitrary<NetworkPolicyPort> = fc.oneof(
  fc.record({ protocol: fc.constantFrom('TCP', 'UDP') }),
  fc.record({ port: fc.constantFrom(53, 80, 443, 6443, 8888) }),
  fc.record({ protocol: fc.constant('UDP'), port: fc.constantFrom(53, 4789) }),
  fc.record({ port: fc.constantFrom(1, 52), endPort: fc.constantFrom(54, 1024, 65_535) }),
  fc.record({ port: fc.constant('http') }),
);
const PEERS = fc.option(fc.array(PEER, { maxLength: 2 }), { nil: undefined });
const PORTS = fc.option(fc.array(PORT, { maxLength: 2 }), { nil: undefined });
const RULES = fc.array(fc.tuple(PEERS, PORTS), { maxLength: 2 });
const SPEC = fc
  .tuple(
    selector(POD_LABEL),
    fc.constantFrom(['Ingress'], ['Egress'], ['Ingress', 'Egress'], ['Ingress', 'Egress']),
    RULES,
    RULES,
  )
  .map(([podSelector, policyTypes, into, out]) => ({
    podSelector,
    policyTypes,
    ingress: into.map(([from, ports]) => ({ ...(from && { from }), ...(ports && { ports }) })),
    egress: out.map(([to, ports]) => ({ ...(to && { to }), ...(ports && { ports }) })),
  }));
const CLOSED = { podSelector: {}, policyTypes: ['Ingress', 'Egress'] };
/** Mostly beside one that closes, as policies add up. */
const POLICIES = fc
  .tuple(fc.array(SPEC, { minLength: 1, maxLength: 2 }), fc.integer({ min: 0, max: 3 }))
  .map(([specs, closed]) =>
    [...specs, ...(closed === 0 ? [] : [CLOSED])].map((spec, at): NetworkPolicy => ({
      metadata: { name: `p${at}`, namespace: 'tenant' },
      spec,
    })),
  );

const text = (family: 4 | 6, address: bigint): string =>
  family === 4
    ? [24n, 16n, 8n, 0n].map((bits) => (address >> bits) & 255n).join('.')
    : Array.from({ length: 8 }, (_, at) => ((address >> BigInt(112 - 16 * at)) & 0xffffn).toString(16)).join(':');

/** The addresses of a network that some policy here could treat in another way than its neighbours. */
function edgesIn(network: string): string[] {
  const whole = rangeOf(network) ?? expect.unreachable();
  const inside = [whole, ...CIDRS.flatMap((cidr) => rangeOf(cidr) ?? [])].flatMap((one) => common(one, whole) ?? []);
  const edges = inside.flatMap(({ first, last }) => [first, last, first - 1n, last + 1n]);
  return [...new Set(edges)]
    .filter((edge) => edge >= whole.first && edge <= whole.last)
    .map((edge) => text(whole.family, edge));
}

const PODS = ['10.244.0.0/24', 'fd00:10:244::/64'];
/** Those of name resolution are open to all. */
const EVERY_PORT = ['TCP', 'UDP'].flatMap((protocol) =>
  [1, 52, 54, 80, 443, 1024, 4789, 6443, 8888, 65_535].map((port) => ({ protocol, port })),
);
const TCP = EVERY_PORT.filter(({ protocol }) => protocol === 'TCP');
const on = (numbers: number[]) => TCP.filter(({ port }) => numbers.includes(port));

const METADATA = [
  '169.254.169.254',
  '168.63.129.16',
  '100.100.100.200',
  'fd00:ec2::254',
  'fd20:ce::254',
  // By NAT64: the first one, Azure's, Alibaba's, and those of pods of AWS.
  ...['a9fe:a9fe', 'a83f:8110', '6464:64c8', 'a9fe:aa02', 'a9fe:aa17'].flatMap((last) => [
    `64:ff9b::${last}`,
    `64:ff9b:1::${last}`,
  ]),
].map((ip) => ({ remote: { ip }, ports: on([80]) }));
const OTHER_PODS = ['10.244.0.9', 'fd00:10:244::9'].flatMap((ip) =>
  INSTANCES.map((pod) => ({ remote: { ip, namespace: OTHER, pod }, ports: EVERY_PORT })),
);
const POD_ADDRESSES = PODS.flatMap(edgesIn).map((ip) => ({ remote: { ip }, ports: EVERY_PORT }));
/** What is at the nodes, pods and Services of the sound installation, at its API server, and at every cloud. */
const OUT: { remote: End; ports: { protocol: string; port: number }[] }[] = [
  ...METADATA,
  { remote: { ip: '192.168.3.4' }, ports: EVERY_PORT },
  { remote: { ip: '192.168.3.2' }, ports: on([6443]) },
  { remote: { ip: '10.96.0.1' }, ports: on([443]) },
  ...edgesIn('10.96.0.0/12').map((ip) => ({ remote: { ip }, ports: EVERY_PORT })),
  ...POD_ADDRESSES,
  ...OTHER_PODS,
];
const INTO = [...POD_ADDRESSES, ...OTHER_PODS];

/** Who an instance connects with although it must not: on some port, or on each of TCP. */
function reached(
  policies: readonly NetworkPolicy[],
  direction: Connection['direction'],
  ends: typeof OUT,
  all = false,
): End[] {
  return ends
    .filter(({ remote, ports }) =>
      INSTANCES.some((instance) => {
        const passes = (one: { protocol: string; port: number }) =>
          lets(policies, instance, { direction, remote, ...one });
        return all ? TCP.every(passes) : ports.some(passes);
      }),
    )
    .map(({ remote }) => remote);
}

const SOUND = soundObjects() as unknown as Objects;
const FACTS = {
  namespace: 'berth-system',
  prefix: 'berth',
  release: 'berth',
  gitVersion: 'v1.36.2',
  now: 0,
  ahead: undefined,
  absent: new Set<never>(),
};

/** In which directions the doctor finds the tenant's instances open. */
function openFor(networkPolicies: readonly NetworkPolicy[], severities: string[]): string[] {
  const others = SOUND.networkPolicies.filter(({ metadata }) => metadata.namespace !== 'tenant');
  const read = { ...SOUND, networkPolicies: [...others, ...networkPolicies] };
  const ofTenant = network.find(read, FACTS).filter(({ severity }) => severities.includes(severity));
  return ofTenant.flatMap(({ reason, message }) =>
    ['Ingress', 'Egress'].filter(
      (direction) =>
        reason === `${direction}Open` ||
        (reason === 'TenantOpen' && (message.includes(`type ${direction}`) || !message.includes('type'))),
    ),
  );
}

const RUNS = { numRuns: 300 };

test('whatever policies let through, the doctor says so', () => {
  fc.assert(
    fc.property(POLICIES, (policies) => {
      const open = openFor(policies, ['error', 'warning']);
      if (reached(policies, 'Egress', OUT).length > 0) expect(open).toContain('Egress');
      if (reached(policies, 'Ingress', INTO).length > 0) expect(open).toContain('Ingress');
    }),
    RUNS,
  );
});

test('what is open on every port is an error', () => {
  fc.assert(
    fc.property(POLICIES, (policies) => {
      const open = openFor(policies, ['error']);
      const nodes = OUT.filter(({ remote }) => remote.ip.startsWith('192.168.'));
      if (reached(policies, 'Egress', [...nodes, ...INTO], true).length > 0) expect(open).toContain('Egress');
      if (reached(policies, 'Ingress', INTO, true).length > 0) expect(open).toContain('Ingress');
    }),
    RUNS,
  );
});

test('what the doctor calls an error is let through', () => {
  fc.assert(
    fc.property(POLICIES, (policies) => {
      // Several policies that close some instances each, and spellings that programs read in several ways, are errors too.
      fc.pre(policies.at(-1)?.spec === CLOSED && !/"0\d/.test(JSON.stringify(policies)));
      const open = openFor(policies, ['error']);
      if (open.includes('Egress')) expect(reached(policies, 'Egress', OUT)).not.toEqual([]);
      if (open.includes('Ingress')) expect(reached(policies, 'Ingress', INTO)).not.toEqual([]);
    }),
    RUNS,
  );
});

/** Which private networks instances reach is the operator's affair there. */
const BY_LABELS = OTHER_PODS.map(({ remote, ports }) => ({ remote: { ...remote, ip: '' }, ports }));

test('where a closed namespace is required, none is let through to other tenants and metadata services', () => {
  fc.assert(
    fc.property(POLICIES, (policies) => {
      if (whyOpen('tenant', policies) !== undefined) return;
      expect(reached(policies, 'Egress', [...METADATA, ...BY_LABELS])).toEqual([]);
      expect(reached(policies, 'Ingress', INTO, true)).toEqual([]);
    }),
    RUNS,
  );
});
