import type { ValidatingAdmissionPolicyBinding } from '../../kube/installation-types.ts';
import { helmUpgrade, rolesIn } from '../facts.ts';
import { check, named, type Problem } from '../finding.ts';

/** What the names of the chart's policies end with: those that every release has. */
export const POLICIES: readonly string[] = [
  'activity',
  'ceilings',
  'claims',
  'cleanup',
  'controller',
  'exec',
  'grace',
  'image-pulls',
  'limits',
  'own-namespace',
  'pod-annotations',
  'pod-finalizer',
  'pods',
  'quotas',
  'roles',
  'secrets',
  'sizes',
  'status',
];
/** Those that a value of the chart leaves out: models.scaleFromZero, webhooks.enabled, dashboard.enabled and tenants.requireLabel. */
export const OPTIONAL_POLICIES: readonly string[] = ['model-leases', 'notifier', 'pools', 'tenants'];

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
    const missing = POLICIES.map((name) => `${prefix}-${name}`).filter((name) => !there.has(name));
    const unbound = [...POLICIES, ...OPTIONAL_POLICIES]
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
