import { readFileSync } from 'node:fs';
import { BlockList, isIP, isIPv6 } from 'node:net';
import { CliFailure, EXIT } from '../failure.ts';
import type { Environment } from '../settings.ts';

/** A host without the brackets that an IPv6 address has in a URL. */
export const bare = (host: string): string => host.replace(/^\[(.*)\]$/, '$1').toLowerCase();

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

const family = (address: string): 'ipv4' | 'ipv6' => (isIPv6(address) ? 'ipv6' : 'ipv4');

/** Whether the address stands in a network that is written as 10.0.0.0/8. */
function isInNetwork(host: string, text: string): boolean {
  const [network = '', digits = ''] = text.split('/');
  if (isIP(host) === 0 || isIP(bare(network)) === 0 || !/^\d{1,3}$/.test(digits)) return false;
  const length = Number(digits);
  if (length > (isIPv6(bare(network)) ? 128 : 32)) return false;
  const list = new BlockList();
  list.addSubnet(bare(network), length, family(bare(network)));
  return list.check(host, family(host));
}

/** Whether one word of NO_PROXY means this host: a name and all below it, an address, a network, or everything. */
function isMeant(word: string, host: string, port: string): boolean {
  if (word === '*') return true;
  if (word.includes('/')) return isInNetwork(host, word);
  const [, name = '', wanted] = isIPv6(word) ? [undefined, word] : (/^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(word) ?? []);
  if (name === '' || (wanted !== undefined && wanted !== port)) return false;
  const end = bare(name).replace(/^\*?\./, '');
  return host === end || (isIP(host) === 0 && host.endsWith(`.${end}`));
}

/** The proxy through which a URL is reached; undefined where it is reached directly. Throws for a proxy of another kind. */
export function proxyOf(url: URL, env: Environment): URL | undefined {
  const host = bare(url.hostname);
  if (host === 'localhost' || (isIP(host) !== 0 && LOOPBACK.check(host, family(host)))) return undefined;
  const isTls = url.protocol === 'https:';
  const names = [isTls ? 'HTTPS_PROXY' : 'HTTP_PROXY', 'ALL_PROXY'].flatMap((one) => [one.toLowerCase(), one]);
  const name = names.find((one) => env[one]);
  const text = name === undefined ? undefined : env[name];
  if (!text) return undefined;
  const port = url.port || (isTls ? '443' : '80');
  const words = (env['no_proxy'] || env['NO_PROXY'] || '').split(/[\s,]+/).filter(Boolean);
  if (words.some((word) => isMeant(word.toLowerCase(), host, port))) return undefined;
  const proxy = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  const found = URL.canParse(proxy) ? new URL(proxy) : undefined;
  if (found !== undefined && /^https?:$/.test(found.protocol)) return found;
  throw new CliFailure(`${name} is no address of an HTTP proxy.`, {
    exitCode: EXIT.usage,
    next: `Write, for example, ${name}=http://proxy.example.com:3128, or unset it.`,
  });
}

/** A part of a URL; one with a percent sign of its own is as it was written. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The login of a proxy, as its address has it. */
export function proxyLogin({ username, password }: URL): Record<string, string> {
  if (username === '') return {};
  const login = `${decoded(username)}:${decoded(password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(login).toString('base64')}` };
}

function authorities(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    throw new CliFailure(`${name}: ${said}.`, {
      exitCode: EXIT.usage,
      next: `Set ${name} to a file of certificates in PEM that you can read, or unset it.`,
    });
  }
}

/**
 * The authorities that may sign the certificate of a server, where SSL_CERT_FILE names them: as in OpenSSL they stand in the
 * place of the usual ones. Undefined for those of Node, which reads NODE_EXTRA_CA_CERTS itself.
 */
export function authoritiesOf(env: Environment): string[] | undefined {
  const names = ['SSL_CERT_FILE', 'NODE_EXTRA_CA_CERTS'];
  if (!env['SSL_CERT_FILE']) return undefined;
  return names.flatMap((name) => (env[name] ? [authorities(name, env[name])] : []));
}
