import { Resolver } from 'node:dns/promises';
import type { IncomingMessage } from 'node:http';
import { isIP, type LookupFunction } from 'node:net';
import { callbackify } from 'node:util';
import type { Clock } from '../lib/clock.ts';
import { http, https } from '../lib/lean-http.ts';
import { retryAfterMs } from '../lib/retry-after.ts';
import type { TargetRules, Way } from './addresses.ts';

/** Milliseconds for one delivery, from the look-up of the name to the status of the answer. */
const DELIVERY_MS = 10_000;
/** Bytes of an answer that are read, so that a target that writes some text ends well. */
const ANSWER_BYTES = 64 * 1024;
/** Milliseconds for one try of a DNS server. Two tries end well before a delivery does. */
const DNS_TRY_MS = 2_000;

/** How a delivery went. */
export type Outcome =
  | { kind: 'delivered' }
  /** The target answered with another status than 2xx. */
  | { kind: 'refused'; status: number; retryAfterMs: number | undefined }
  /** The rules forbid the URL, or every address of its host; or the host has none. */
  | { kind: 'not_allowed' }
  /** No answer in time, or none that is HTTP. */
  | { kind: 'unreachable'; why: 'timeout' | 'certificate' | 'connection' };

/** One delivery. */
export interface Delivery {
  url: string;
  headers: Readonly<Record<string, string>>;
  body: string;
}

export interface TargetsDeps {
  rules: TargetRules;
  /** The addresses of a host name, for each connection anew. Rejects where there are none. */
  resolve: (hostname: string) => Promise<readonly string[]>;
  clock: Clock;
}

class NotAllowedError extends Error {
  override name = 'NotAllowedError';
}

class DeliveryTimeoutError extends Error {
  override name = 'DeliveryTimeoutError';
}

const CERTIFICATE = /^(ERR_TLS_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_(GET|VERIFY)_)/;

function outcomeOf(error: unknown): Outcome {
  if (error instanceof NotAllowedError) return { kind: 'not_allowed' };
  if (error instanceof DeliveryTimeoutError) return { kind: 'unreachable', why: 'timeout' };
  const { code = '' } = error as NodeJS.ErrnoException;
  return { kind: 'unreachable', why: CERTIFICATE.test(code) ? 'certificate' : 'connection' };
}

/**
 * Delivers to URLs of tenants. Every connection is new, leads to an address that was checked for it, and uses no proxy;
 * certificates are verified, and redirects are answers like any other.
 */
export class Targets {
  readonly #deps: TargetsDeps;

  constructor(deps: TargetsDeps) {
    this.#deps = deps;
  }

  /** Sends one POST. Never rejects, unless `signal` aborts. */
  async deliver(delivery: Delivery, signal: AbortSignal): Promise<Outcome> {
    signal.throwIfAborted();
    const timeout = new AbortController();
    const cancel = this.#deps.clock.setTimeout(() => timeout.abort(new DeliveryTimeoutError()), DELIVERY_MS);
    const ends = AbortSignal.any([signal, timeout.signal]);
    try {
      const answer = await this.#send(delivery, ends);
      await this.#readSome(answer);
      return this.#judge(answer);
    } catch (error) {
      signal.throwIfAborted();
      return outcomeOf(timeout.signal.aborted ? timeout.signal.reason : error);
    } finally {
      cancel();
    }
  }

  #judge({ statusCode = 0, headers }: IncomingMessage): Outcome {
    if (statusCode >= 200 && statusCode < 300) return { kind: 'delivered' };
    const wait = retryAfterMs(headers['retry-after'], this.#deps.clock.now());
    return { kind: 'refused', status: statusCode, retryAfterMs: wait };
  }

  /** Resolves with the head of the answer. */
  #send({ url: text, headers, body }: Delivery, signal: AbortSignal): Promise<IncomingMessage> {
    if (!URL.canParse(text)) throw new NotAllowedError();
    const url = new URL(text);
    const { protocol } = url;
    const way = { protocol, port: Number(url.port) || (protocol === 'https:' ? 443 : 80) };
    const hostname = url.hostname.replace(/^\[|\]$/g, '');
    // Node looks up no name for an address.
    if (isIP(hostname) !== 0 && !this.#deps.rules.allows(hostname, way)) throw new NotAllowedError();
    const isTls = protocol === 'https:';
    const { request, Agent } = isTls ? https : http;
    const options = {
      method: 'POST',
      headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) },
      // One of its own: the one of Node may know a proxy, and keeps connections.
      agent: new Agent({ keepAlive: false }),
      lookup: this.#lookup(way),
      signal,
      // Whatever the environment says.
      ...(isTls && { rejectUnauthorized: true }),
    };
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const sent = request(url, options).once('response', resolve).on('error', reject);
    // A target may also change the protocol, which is no answer.
    sent.once('close', () => reject(new Error('The connection ended without an answer.')));
    sent.end(body);
    return promise;
  }

  /** Gives Node the addresses to connect to, looked up for this connection. */
  #lookup(way: Way): LookupFunction {
    const find = callbackify((hostname: string) => this.#allowedAddresses(hostname, way));
    return (hostname, { all }, done) =>
      find(hostname, (error, found) => {
        const first = error ? undefined : found[0];
        if (first === undefined) done(new NotAllowedError(), '');
        else if (all) done(null, found);
        else done(null, first.address, first.family);
      });
  }

  /** Those of the name that the rules allow. One that does not exist has none. */
  async #allowedAddresses(hostname: string, way: Way) {
    const { resolve, rules } = this.#deps;
    const found = await resolve(hostname).catch(() => []);
    const allowed = found.filter((address) => rules.allows(address, way));
    return allowed.map((address) => ({ address, family: isIP(address) }));
  }

  /** Reads the answer to its end, to the bound, or until the signal ends the request. What is in it does not matter. */
  #readSome(answer: IncomingMessage): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    let bytes = 0;
    answer.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > ANSWER_BYTES) answer.destroy();
    });
    answer.on('error', () => undefined);
    answer.once('close', () => resolve());
    return promise;
  }
}

/**
 * The addresses of a host name, from DNS alone: no hosts file, and no search domains of the cluster. It takes no thread
 * of the process, so that a name whose server is silent holds up nobody else. Rejects when no address is found.
 */
export async function resolveHost(hostname: string): Promise<string[]> {
  const resolver = new Resolver({ timeout: DNS_TRY_MS, tries: 2 });
  const found = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  const addresses = found.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
  if (addresses.length === 0) throw new Error('The host name has no address.');
  return addresses;
}
