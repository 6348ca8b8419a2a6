import { Resolver } from 'node:dns/promises';

/** Milliseconds for one try of a DNS server. Two tries end well before a delivery does. */
const TRY_MS = 2_000;

/**
 * The addresses of a host name, from DNS alone: no hosts file, and no search domains of the cluster. It takes no thread
 * of the process, so that a name whose server is silent holds up nobody else. Rejects when no address is found.
 */
export async function resolveHost(hostname: string): Promise<string[]> {
  const resolver = new Resolver({ timeout: TRY_MS, tries: 2 });
  const found = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  const addresses = found.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
  if (addresses.length === 0) throw new Error('The host name has no address.');
  return addresses;
}
