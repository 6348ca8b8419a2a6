/** What one request needs of the roles, as the API server's authorizer sees it. */
export interface Access {
  verb: string;
  group: string;
  /** With its subresource, as in a role: pods/exec. */
  resource: string;
  namespace: string;
  name: string;
}

interface AuditEvent {
  user: { username: string };
  verb: string;
  objectRef?: {
    resource?: string;
    subresource?: string;
    apiGroup?: string;
    namespace?: string;
    name?: string;
  };
  responseStatus?: { code?: number };
  annotations?: Record<string, string>;
}

export interface Rule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
  resourceNames?: string[];
}

/** A right that a role gives: one verb on one resource, for all names or one. */
export interface Grant {
  role: string;
  verb: string;
  group: string;
  resource: string;
  name: string | undefined;
  /** Undefined: in every namespace. */
  namespace: string | undefined;
}

export interface AuditedUse {
  used: Access[];
  /** Requests that the authorizer refused. */
  refused: Access[];
}

/** Every request of one user in an audit log, and those among them that no role allowed. */
export function usesOf(log: string, user: string): AuditedUse {
  const used: Access[] = [];
  const refused: Access[] = [];
  for (const line of log.split('\n')) {
    // The last line may be half written.
    if (!line.endsWith('}')) continue;
    const event = JSON.parse(line) as AuditEvent;
    const { objectRef } = event;
    if (event.user.username !== user || objectRef?.resource === undefined) continue;
    const { resource, subresource, apiGroup = '', namespace = '', name = '' } = objectRef;
    const access = {
      verb: event.verb,
      group: apiGroup,
      resource: subresource === undefined ? resource : `${resource}/${subresource}`,
      namespace,
      name,
    };
    const allowed = event.annotations?.['authorization.k8s.io/decision'] !== 'forbid';
    (allowed ? used : refused).push(access);
  }
  return { used, refused };
}

/** The single rights of a role. */
export function grantsOf(role: string, rules: readonly Rule[], namespace?: string): Grant[] {
  return rules.flatMap(({ apiGroups, resources, verbs, resourceNames = [undefined] }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        verbs.flatMap((verb) => resourceNames.map((name) => ({ role, verb, group, resource, name, namespace }))),
      ),
    ),
  );
}

function covers(grant: Grant, access: Access): boolean {
  return (
    grant.verb === access.verb &&
    grant.group === access.group &&
    grant.resource === access.resource &&
    (grant.namespace === undefined || grant.namespace === access.namespace) &&
    // A name is not known when something is created.
    (grant.name === undefined || grant.name === access.name)
  );
}

/** The rights that no request needed. */
export function unusedGrants(grants: readonly Grant[], used: readonly Access[]): Grant[] {
  return grants.filter((grant) => !used.some((access) => covers(grant, access)));
}
