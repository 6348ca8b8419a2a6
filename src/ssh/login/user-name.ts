/** Whom a login is for: an instance, with its namespace when the user named one. */
export interface InstanceUser {
  instance: string;
  namespace: string | undefined;
}

// metadata.name of a GPUInstance: an RFC 1123 label or subdomain. A dot separates the namespace, so a name with dots is
// reachable in full form only; names that we hand out have none.
const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const MAX_LENGTH = 128;

/** Reads `id` or `id.namespace`; undefined for anything else, which is treated as an unknown instance. */
export function parseUserName(text: string): InstanceUser | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const dot = text.indexOf('.');
  const instance = dot < 0 ? text : text.slice(0, dot);
  const namespace = dot < 0 ? undefined : text.slice(dot + 1);
  if (!LABEL.test(instance)) return undefined;
  if (namespace !== undefined && !LABEL.test(namespace)) return undefined;
  return { instance, namespace };
}
