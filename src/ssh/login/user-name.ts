/** The instance that a user name names, with its namespace when the user gave one. */
export interface InstanceUser {
  instance: string;
  namespace: string | undefined;
}

// metadata.name of a GPUInstance is an RFC 1123 subdomain and may have dots. A namespace has none: the last dot begins it.
const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const MAX_LENGTH = 128;

/** Reads `id` or `id.namespace`; undefined for anything else, which is treated as an unknown instance. */
export function parseUserName(text: string): InstanceUser | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const dot = text.lastIndexOf('.');
  const instance = dot < 0 ? text : text.slice(0, dot);
  const namespace = dot < 0 ? undefined : text.slice(dot + 1);
  if (!instance.split('.').every((label) => LABEL.test(label))) return undefined;
  if (namespace !== undefined && !LABEL.test(namespace)) return undefined;
  return { instance, namespace };
}
