import type { ValidatingAdmissionPolicyBinding } from '../../kube/installation-types.ts';
import { helmUpgrade, rolesIn } from '../facts.ts';
import { check, named, type Problem } from '../finding.ts';

/** What the names of the chart's policies end with. Every release has the required ones; a value of the chart leaves each other out. */
export const POLICIES: Readonly<Record<string, 'required' | 'optional'>> = {
  activity: 'required',
  bills: 'required',
  ceilings: 'required',
  claims: 'required',
  cleanup: 'required',
  controller: 'required',
  exec: 'required',
  grace: 'required',
  'image-pulls': 'required',
  keys: 'optional',
  limits: 'required',
  'model-leases': 'optional',
  'model-servers': 'required',
  notifier: 'optional',
  'own-namespace': 'required',
  payers: 'required',
  'pod-annotations': 'required',
  'pod-finalizer': 'required',
  pods: 'required',
  pools: 'optional',
  quotas: 'required',
  roles: 'required',
  secrets: 'required',
  sizes: 'required',
  status: 'required',
  tenants: 'optional',
};

function denies(bindings: readonly ValidatingAdmissionPolicyBinding[], policy: string): boolean {
  return bindings.some(({ spec }) => spec?.policyName === policy && (spec.validationActions ?? []).includes('Deny'));
}

function problem(reason: string, names: readonly string[], rest: Pick<Problem, 'message' | 'remedy'>): Problem[] {
  if (names.length === 0) return [];
  const objects = names.map((name) => `validatingadmissionpolicy/${name}`);
  const why =
    'Under RBAC only, roles of Berth, and people with rights in a tenant, may do what these policies refuse (docs/run/threat-model.md).';
  return [{ severity: 'error', reason, objects, why, ...rest }];
}

export const admission = check({
  name: 'admission',
  title: 'The admission policies of Berth are there, and refuse',
  needs: ['policies', 'bindings', 'deployments'],
  find({ policies, bindings, deployments }, facts): Problem[] {
    const { namespace, prefix } = facts;
    // Without a release there is nothing to bound, and another check says so.
    if (rolesIn(deployments, namespace).size === 0) return [];
    const there = new Set(policies.map(({ metadata }) => metadata.name));
    const missing = Object.keys(POLICIES)
      .filter((name) => POLICIES[name] === 'required')
      .map((name) => `${prefix}-${name}`)
      .filter((name) => !there.has(name));
    const unbound = Object.keys(POLICIES)
      .map((name) => `${prefix}-${name}`)
      .filter((name) => there.has(name) && !denies(bindings, name))
      .toSorted();
    const remedy = helmUpgrade(facts, 'admissionPolicies.enabled=true');
    return [
      ...problem('PolicyMissing', missing, {
        message: `ValidatingAdmissionPolicies ${named(missing)} are not there.`,
        remedy,
      }),
      ...problem('PolicyNotBound', unbound, {
        message: `No binding makes ValidatingAdmissionPolicies ${named(unbound)} refuse anything.`,
        remedy,
      }),
    ];
  },
});
