import { X509Certificate } from 'node:crypto';
import { lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { Dispatcher } from 'undici';
import { isInner } from './inner-address.ts';
import { Agent } from './lean-http.ts';

/** A name outside leads to an address that is none of a server outside. */
export class InnerAddressError extends Error {
  override readonly name = 'InnerAddressError';
  readonly code = 'ERR_INNER_ADDRESS';
}

/** Looked up for each connection anew: what a name meant earlier says nothing. */
const lookupOutside: LookupFunction = (hostname, { family, all }, done) => {
  lookup(hostname, { family: family ?? 0, all: true }, (error, found) => {
    const outside = error === null ? found.filter(({ address }) => !isInner(address)) : [];
    const [first] = outside;
    if (error !== null) done(error, '');
    else if (first === undefined) done(new InnerAddressError('The name leads to this machine or its link.'), '');
    else if (all) done(null, outside);
    else done(null, first.address, first.family);
  });
};

export interface OutsideOptions {
  /** PEM of the only authorities to believe; undefined: those that this process believes. */
  ca: string | undefined;
  keepAliveMs: number;
  connectMs: number;
}

/**
 * Connections to servers outside the cluster, with verified certificates. Redirects are answers like any other. Throws
 * where `ca` begins with no certificate.
 */
export function outsideAgent({ ca, keepAliveMs, connectMs }: OutsideOptions): Dispatcher {
  // Node takes any text, and believes nobody then.
  if (ca !== undefined) void new X509Certificate(ca);
  return new Agent({
    keepAliveTimeout: keepAliveMs,
    // A stream of HTTP/1.1 ends with its connection, which tells the server to stop.
    allowH2: false,
    // Whatever the environment says of certificates.
    connect: { timeout: connectMs, lookup: lookupOutside, rejectUnauthorized: true, ...(ca !== undefined && { ca }) },
  });
}
