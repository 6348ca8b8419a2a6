import type { OtherPolicy } from '../../kube/network-policy.ts';
import { tenantsOf } from '../facts.ts';
import { check, named, type Problem, quoted } from '../finding.ts';
import { SOURCES } from '../sources.ts';

/** Kinds of policies that may open what NetworkPolicies close. */
const OTHERS = [
  'ciliumPolicies',
  'ciliumClusterPolicies',
  'calicoPolicies',
  'calicoClusterPolicies',
  'antreaPolicies',
  'antreaClusterPolicies',
  'adminPolicies',
  'clusterPolicies',
] as const;

/** Actions that let through. Others close, or leave it to NetworkPolicies. */
const OPENS = new Set(['allow', 'accept']);

/** Whether some rule lets something through, whatever it is. */
function opens({ spec, specs = [] }: OtherPolicy): boolean {
  return [...specs, spec ?? {}]
    .flatMap(({ ingress, egress }) => [...(ingress ?? []), ...(egress ?? [])])
    .some((rule) => (rule.action === undefined ? Object.keys(rule).length > 0 : OPENS.has(rule.action.toLowerCase())));
}

export const otherPolicies = check({
  name: 'other-policies',
  title: 'No policy other than NetworkPolicies opens the namespaces of tenants',
  needs: [...OTHERS, 'namespaces', 'instances', 'policies'],
  find(read, facts): Problem[] {
    const tenants = new Set(tenantsOf(read, facts));
    return OTHERS.flatMap((source): Problem[] => {
      const { group, kind, plural, namespaced } = SOURCES[source].type;
      const found = read[source]
        .filter(({ metadata }) => !namespaced || tenants.has(metadata.namespace ?? ''))
        .filter(opens)
        .map(({ metadata }) => ({ ...metadata, namespace: namespaced ? metadata.namespace : undefined }));
      const [first] = found;
      if (first === undefined) return [];
      const names = found.map(({ name, namespace }) => [namespace ?? [], name].flat());
      const which = `${kind} ${named(names.map((one) => one.join('/')))} of ${group}`;
      const where = first.namespace === undefined ? '' : ` -n ${quoted(first.namespace)}`;
      return [
        {
          // Who may write in the namespace of a tenant may be the tenant.
          severity: namespaced ? 'warning' : 'unknown',
          reason: namespaced ? 'OtherPolicyOpens' : 'OtherPolicyNotRead',
          objects: names.map((one) => one.toSpliced(-1, 0, plural).join('/')),
          message: namespaced ? `${which} lets something through.` : `Not known: what ${which} lets through.`,
          why: 'Network plugins add such a policy to NetworkPolicies, or ask it first. Berth does not read its rules.',
          remedy: `kubectl get ${plural}.${group} ${quoted(first.name)}${where} -o yaml   # does a rule reach instances, or let them reach others?`,
        },
      ];
    });
  },
});
