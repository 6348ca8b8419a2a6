import type { DaemonSet, NetworkPolicy } from '../../kube/installation-types.ts';
import { TENANT_LABEL } from '../../resources/tenants/tenant-policy.ts';
import { helmUpgrade, rolesIn } from '../facts.ts';
import { check, named, type Problem } from '../finding.ts';
import { LABELS_OF_PODS, selects } from '../selector.ts';

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
/** Those that connect pods and enforce nothing. */
const CONNECT_ONLY = new Set(['kube-flannel', 'kube-flannel-ds', 'flannel']);

function namesOf({ metadata, spec }: DaemonSet): string[] {
  return [metadata.name, ...(spec?.template.spec?.containers.map(({ name }) => name) ?? [])];
}

function plugin(daemonSets: readonly DaemonSet[]): Problem[] {
  const names = daemonSets.flatMap(namesOf);
  if (names.some((name) => ENFORCE.has(name))) return [];
  const idle = names.find((name) => CONNECT_ONLY.has(name));
  const why = 'Where nothing enforces them, pods of tenants reach each other, the API server and the metadata service.';
  const remedy = 'kubectl get daemonsets --all-namespaces -o wide   # is one of them Calico, Cilium or the like?';
  if (idle !== undefined) {
    const message = `The network plugin ${idle} enforces no NetworkPolicy, and nothing that does is seen beside it.`;
    return [{ severity: 'error', reason: 'NotEnforced', objects: [], message, why, remedy }];
  }
  const message = 'Not known: no DaemonSet is seen that is known to enforce NetworkPolicies.';
  return [{ severity: 'unknown', reason: 'EnforcementNotKnown', objects: [], message, why, remedy }];
}

/** Whether a policy closes the pods of instances in its namespace to whom it does not name. */
function closes({ spec }: NetworkPolicy): boolean {
  const types = spec?.policyTypes ?? ['Ingress'];
  return types.includes('Ingress') && selects(spec?.podSelector, LABELS_OF_PODS);
}

export const network = check({
  name: 'network',
  title: 'NetworkPolicies are there, and enforced',
  needs: ['networkPolicies', 'daemonSets', 'deployments', 'namespaces'],
  find({ networkPolicies, daemonSets, deployments, namespaces }, facts): Problem[] {
    const { namespace } = facts;
    const own = networkPolicies.filter(({ metadata }) => metadata.namespace === namespace);
    const open = [...rolesIn(deployments, namespace).values()].filter(({ spec }) => {
      const labels = spec?.template.metadata?.labels;
      return !own.some((policy) => selects(policy.spec?.podSelector, labels));
    });
    const roles = open.map(({ metadata }) => `${namespace}/deployment/${metadata.name}`);
    const closed = new Set(networkPolicies.filter(closes).map(({ metadata }) => metadata.namespace));
    const tenants = namespaces
      .filter(({ metadata }) => metadata.labels?.[TENANT_LABEL] === 'true' && metadata.deletionTimestamp === undefined)
      .map(({ metadata }) => metadata.name)
      .filter((name) => !closed.has(name))
      .toSorted();
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
    if (tenants.length > 0)
      found.push({
        severity: 'error',
        reason: 'TenantOpen',
        objects: tenants.map((name) => `namespace/${name}`),
        message: `In ${named(tenants)} no NetworkPolicy closes the pods of instances.`,
        why: 'Pods of other tenants reach them, and they reach private networks and the metadata service.',
        remedy: `kubectl kustomize deploy/tenant | sed 's/: tenant$/: ${tenants[0]}/' | kubectl apply -f -`,
      });
    return [...found, ...plugin(daemonSets)];
  },
});
