/**
 * Who can change a ceiling of a tenant, and where.
 *
 * @param field its path in the spec of a TenantPolicy
 * @param policies those that the ceilings of the tenant come from; undefined where they are not at hand
 */
export function whoCanChange(field: string, policies?: readonly string[]): string {
  return `The operator can change ${field} in ${policiesInWords(policies)}.`;
}

function policiesInWords(policies: readonly string[] | undefined): string {
  if (policies === undefined) return 'the TenantPolicy that GET /limits names';
  // Of several policies each holds at its strictest: to change one may not be enough.
  return policies.length === 0 ? 'a TenantPolicy' : `TenantPolicy ${policies.join(' and TenantPolicy ')}`;
}

/**
 * Who can change a limit of an API key, and where.
 *
 * @param field in spec.limits
 * @param name of the APIKey
 */
export function whoCanChangeKey(field: string, name: string): string {
  return `An administrator of the tenant can change limits.${field} in APIKey ${name}.`;
}
