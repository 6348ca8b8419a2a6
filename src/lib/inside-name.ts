const INSIDE: ReadonlySet<string> = new Set(
  'local localhost localdomain internal intranet corp home lan private arpa test invalid'.split(' '),
);

/**
 * Whether a host, in lower case, has a name of this cluster, this network or this machine. A last part that is a number
 * makes an IPv4 address of any spelling. Of other names nobody knows where they lead.
 */
export function isInsideName(host: string): boolean {
  const labels = (host.endsWith('.') ? host.slice(0, -1) : host).split('.');
  const last = labels.at(-1) ?? '';
  return labels.length === 1 || labels.includes('svc') || INSIDE.has(last) || /^(?:\d+|0x[\da-f]*)$/.test(last);
}
