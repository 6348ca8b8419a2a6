import type { DaemonSet } from '../../kube/installation-types.ts';
import type { NetworkPolicy } from '../../kube/network-policy.ts';
import { selects } from '../../kube/selector.ts';
import { isPublic } from '../../lib/public-address.ts';
import {
  type Closed,
  closedAddress,
  closes,
  type Direction,
  DIRECTIONS,
  METADATA_SERVICES,
  type Opening,
  openingsOf,
  PRIVATE_NETWORKS,
} from '../../inventory/network/policies.ts';
import { openingWords } from '../../inventory/network/words.ts';
import { helmUpgrade, rolesIn, tenantsOf } from '../facts.ts';
import { byFault, check, firstOf, named, type Problem, quoted } from '../finding.ts';
import type { Objects } from '../sources.ts';

/** DaemonSets of programs that enforce NetworkPolicies, by their name or that of a container. */
const ENFORCE = new Set([
  'anetd',
  'antrea-agent',
  'aws-eks-nodeagent',
  'azure-npm',
  'calico-node',
  'canal',
  'cilium',
  'cilium-agent',
  'kube-network-policies',
  'kube-router',
  'ovnkube-node',
  'weave-net',
]);
/** Where these run. A tenant who may make a DaemonSet elsewhere can give it any name. */
const SYSTEM_NAMESPACES = new Set([
  'kube-system',
  'calico-system',
  'cilium',
  'cilium-system',
  'kube-flannel',
  'openshift-ovn-kubernetes',
  'ovn-kubernetes',
]);
/** Those that connect pods and enforce nothing. */
const CONNECT_ONLY = new Set(['kube-flannel', 'kube-flannel-ds', 'flannel']);

function namesOf({ metadata, spec }: DaemonSet): string[] {
  return [metadata.name, ...(spec?.template.spec?.containers.map(({ name }) => name) ?? [])];
}

function plugin(daemonSets: readonly DaemonSet[]): Problem[] {
  const names = daemonSets
    .filter(({ metadata, status }) => SYSTEM_NAMESPACES.has(metadata.namespace ?? '') && (status?.numberReady ?? 0) > 0)
    .flatMap(namesOf);
  if (names.some((name) => ENFORCE.has(name))) return [];
  const idle = names.find((name) => CONNECT_ONLY.has(name));
  const why = 'Where nothing enforces them, pods of tenants reach each other, the API server and the metadata service.';
  const remedy = 'kubectl get daemonsets --all-namespaces -o wide   # is one of them Calico, Cilium or the like?';
  if (idle !== undefined) {
    const message = `The network plugin ${idle} enforces no NetworkPolicy, and no other plugin that does is seen.`;
    return [{ severity: 'error', reason: 'NotEnforced', objects: [], message, why, remedy }];
  }
  const message = 'Not known: no system DaemonSet that enforces NetworkPolicies has a Ready pod.';
  return [{ severity: 'unknown', reason: 'EnforcementNotKnown', objects: [], message, why, remedy }];
}

const API_SERVER = 'the API server';
const NODES_OF_CLUSTER = 'nodes';

type Read = Pick<
  Objects,
  'nodes' | 'instances' | 'ownPods' | 'serviceNetworks' | 'apiServerService' | 'apiServers' | 'networkPolicies'
>;

/** The addresses of the cluster that instances have no business with, as far as Kubernetes shows them. */
function closedOf(read: Read): Record<Direction, Closed[]> {
  const pods = [
    ...read.nodes.flatMap(({ spec }) => spec?.podCIDRs ?? [spec?.podCIDR ?? '']),
    ...read.ownPods.flatMap(({ spec, status }) =>
      spec?.hostNetwork === true ? [] : (status?.podIPs ?? []).map(({ ip }) => ip),
    ),
    ...read.instances.map(({ status }) => status?.podIP ?? ''),
  ].flatMap((address) => closedAddress('pods', address));
  const services = read.serviceNetworks
    .flatMap(({ spec }) => spec?.cidrs ?? [])
    .flatMap((address) => closedAddress('Services', address));
  const apiService = read.apiServerService.flatMap(({ spec }) => {
    const numbers = spec?.ports?.map(({ port }) => port);
    return (spec?.clusterIPs ?? []).flatMap((one) => closedAddress(API_SERVER, one, numbers));
  });
  const apiServers = read.apiServers.flatMap(({ endpoints = [], ports }) => {
    const numbers = ports?.flatMap(({ port }) => port ?? []);
    return endpoints.flatMap(({ addresses }) => addresses).flatMap((one) => closedAddress(API_SERVER, one, numbers));
  });
  const nodes = read.nodes.flatMap(({ status }) =>
    (status?.addresses ?? []).flatMap(({ address }) => closedAddress(NODES_OF_CLUSTER, address)),
  );
  const known = new Set(pods.map(({ range }) => range.family));
  const assumed = PRIVATE_NETWORKS.filter(({ range }) => !known.has(range.family));
  return {
    Ingress: [...pods, ...assumed],
    Egress: [...METADATA_SERVICES, ...apiServers, ...apiService, ...nodes, ...pods, ...services],
  };
}

/**
 * Whether an opening may be meant. One port may be that of a storage, or of a program for everybody. A public address of
 * a machine is reached by everybody, unless its own firewall lets in only the cluster.
 */
function mayBeMeant({ to, direction, isNarrow }: Opening): boolean {
  if (direction === 'Ingress') return isNarrow;
  if (typeof to === 'string') return false;
  const isOfMachine = ({ what, address }: Closed): boolean =>
    (what === API_SERVER || what === NODES_OF_CLUSTER) && isPublic(address);
  const isOfOperator = ({ what }: Closed): boolean =>
    what === API_SERVER || METADATA_SERVICES.some((one) => one.what === what);
  return to.every((one) => isOfMachine(one) || (isNarrow && !isOfOperator(one)));
}

/** What the policies of tenants let through, with policies of the same fault together. */
function openings(read: Read, isTenant: (namespace: string) => boolean): Problem[] {
  const closed = closedOf(read);
  const found = read.networkPolicies
    .filter(({ metadata }) => isTenant(metadata.namespace ?? ''))
    .flatMap((policy) =>
      openingsOf(policy, closed).map((opening) => ({ policy, opening, does: openingWords(opening) })),
    );
  const faults = byFault(found.map((one) => [`${one.policy.metadata.name} ${one.does}`, one] as const));
  return [...faults.values()].flatMap((all): Problem[] => {
    const [first] = all;
    if (first === undefined) return [];
    const { opening, does } = first;
    const names = all.map(({ policy }) => `${policy.metadata.namespace}/${policy.metadata.name}`);
    const isOut = opening.direction === 'Egress';
    const addresses = typeof opening.to === 'string' || !isOut ? [] : opening.to.map(({ address }) => address);
    const { words, more } = firstOf([...new Set(addresses)]);
    const mend =
      words === ''
        ? 'take that rule out'
        : `put into except, or into tenants.networkPolicy.extraBlockedNetworks of the chart: ${words}${more}`;
    return [
      {
        severity: mayBeMeant(opening) ? 'warning' : 'error',
        reason: isOut ? 'EgressOpen' : 'IngressOpen',
        objects: names.map((name) => name.replace('/', '/networkpolicy/')),
        message: `NetworkPolicy ${named(names)} ${does}.`,
        why: isOut
          ? 'A tenant reaches what only machines and programs of the operator should, and what it gives them.'
          : 'Programs that listen in an instance are open to them, whatever other policies close.',
        remedy: `kubectl edit networkpolicy ${quoted(first.policy.metadata.name)} -n ${quoted(first.policy.metadata.namespace ?? '')}   # ${mend}`,
      },
    ];
  });
}

/** What no policy of a namespace closes, by the types of policies. */
const OPEN: Readonly<Record<string, { what: string; why: string }>> = {
  'Ingress Egress': {
    what: 'closes the pods of instances',
    why: 'Pods of other tenants reach them, and they reach private networks and the metadata service.',
  },
  Ingress: { what: 'of the type Ingress closes the pods of instances', why: 'Pods of other tenants reach them.' },
  Egress: {
    what: 'of the type Egress closes the pods of instances',
    why: 'They reach private networks, the API server and the metadata service.',
  },
};

/** Tenants without a policy that closes their instances. */
function withoutPolicy(tenants: readonly string[], policies: readonly NetworkPolicy[]): Problem[] {
  const openIn = (namespace: string): string => {
    const own = policies.filter(({ metadata }) => metadata.namespace === namespace);
    const open = DIRECTIONS.filter((direction) => !own.some((policy) => closes(policy, direction)));
    return open.join(' ');
  };
  const faults = byFault(tenants.map((name) => [openIn(name), name] as const));
  return [...faults].flatMap(([fault, names]): Problem[] => {
    const said = OPEN[fault];
    if (said === undefined) return [];
    return [
      {
        severity: 'error',
        reason: 'TenantOpen',
        objects: names.map((name) => `namespace/${name}`),
        message: `In ${named(names)} no NetworkPolicy ${said.what}.`,
        why: said.why,
        remedy: `kubectl kustomize deploy/tenant | sed 's/: tenant$/: ${names[0]}/' | kubectl apply -f -`,
      },
    ];
  });
}

export const network = check({
  name: 'network',
  title: 'NetworkPolicies are there, closed, and enforced',
  needs: [
    'networkPolicies',
    'daemonSets',
    'deployments',
    'namespaces',
    'nodes',
    'instances',
    'ownPods',
    'serviceNetworks',
    'apiServerService',
    'apiServers',
    'policies',
  ],
  find(read, facts): Problem[] {
    const { networkPolicies, daemonSets, deployments } = read;
    const { namespace } = facts;
    const own = networkPolicies.filter(({ metadata }) => metadata.namespace === namespace);
    const open = [...rolesIn(deployments, namespace).values()].filter(({ spec }) => {
      const labels = spec?.template.metadata?.labels;
      return !own.some((policy) => selects(policy.spec?.podSelector, labels));
    });
    const roles = open.map(({ metadata }) => `${namespace}/deployment/${metadata.name}`);
    const tenants = tenantsOf(read, facts);
    const found: Problem[] = [];
    if (roles.length > 0)
      found.push({
        severity: 'warning',
        reason: 'RoleOpen',
        objects: roles,
        message: `No NetworkPolicy selects the pods of ${named(roles)}.`,
        why: 'A role in the wrong hands reaches every pod, and every pod reaches it.',
        remedy: helmUpgrade(facts, 'networkPolicy.enabled=true'),
      });
    const known = new Set(tenants);
    return [
      ...found,
      ...withoutPolicy(tenants, networkPolicies),
      ...openings(read, (name) => known.has(name)),
      ...plugin(daemonSets),
    ];
  },
});
