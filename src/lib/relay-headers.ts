// RFC 9110 section 7.6.1, and what proxies add to it.
const USUAL = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

/** Names of headers, in lower case, that whoever passes a message on must not pass on. `connection` is its Connection header. */
export function hopByHop(connection: string | readonly string[] = ''): ReadonlySet<string> {
  const named = String(connection).split(',');
  return new Set([...USUAL, ...named.map((name) => name.trim().toLowerCase())]);
}
