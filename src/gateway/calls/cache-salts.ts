import { createHmac, randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import type { TenantId } from '../../access/tenants.ts';
import { Lru } from '../../lib/lru.ts';

/** Salts that are not computed again: a keyed hash costs as much as the look-up of an API key and all its checks. */
const KNOWN = 1000;

export interface CacheSaltsDeps {
  /** A secret that the replicas share. Rejects while it cannot be read. */
  saltKey: () => Promise<Buffer>;
  tenantId: TenantId;
  log: Logger;
}

/**
 * What keeps the prefix caches of tenants apart at the servers that they share: an engine finds a start of a prompt again
 * only for calls with the same salt, and nobody can guess another's.
 */
export class CacheSalts {
  readonly #deps: CacheSaltsDeps;
  /** Until the shared one is read, so that no call waits for it. The replicas do not find each other's prompts then. */
  #key: Buffer = randomBytes(32);
  /** Made with this key, by the UID of the tenant. */
  #known = new Lru<string, string>(KNOWN);
  #reading: 'not yet' | 'now' | 'done' = 'not yet';

  constructor(deps: CacheSaltsDeps) {
    this.#deps = deps;
  }

  /** @param own what the client sent as a salt, which divides the tenant's own cache further */
  of(namespace: string, own: string | undefined): string {
    this.load();
    const tenant = this.#deps.tenantId(namespace);
    // Clients may send a new one with each call.
    if (own !== undefined) return this.#saltOf(tenant, own);
    let salt = this.#known.get(tenant);
    if (salt === undefined) this.#known.set(tenant, (salt = this.#saltOf(tenant, null)));
    return salt;
  }

  #saltOf(tenant: string, own: string | null): string {
    const text = JSON.stringify(['prefix-cache', tenant, own]);
    return createHmac('sha256', this.#key).update(text).digest('base64url');
  }

  /** Reads the shared key, unless it has been read. */
  load(): void {
    if (this.#reading !== 'not yet') return;
    this.#reading = 'now';
    void this.#read();
  }

  async #read(): Promise<void> {
    try {
      this.#key = await this.#deps.saltKey();
      this.#known = new Lru(KNOWN);
      this.#reading = 'done';
    } catch (err) {
      this.#reading = 'not yet';
      this.#deps.log.debug({ err }, 'Key of cache salts was not read');
    }
  }
}
