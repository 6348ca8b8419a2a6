import type { AccessWatch } from '../access/access-watch.ts';
import type { PrincipalRef } from '../access/principal.ts';
import { FairShares, Shares } from '../lib/shares.ts';
import { PortError } from './errors.ts';

const MAX_PER_POD = 128;
const MAX_STREAMS = 4096;
/** A tenant may have as many streams open as are left for others: half of all when it is alone. */
const FACTOR = 1;
/** What the use of a port needs. */
export const PORT_USE = { scope: 'compute:write', isOneCall: true } as const;

/** The streams that are open now, limited for each pod, for each tenant and in all. */
export class OpenStreams {
  readonly #access: Pick<AccessWatch, 'open'>;
  readonly #streams = new Set<AbortController>();
  readonly #perPod = new Shares(Infinity);
  readonly #perTenant = new FairShares(MAX_STREAMS, FACTOR);

  constructor(access: Pick<AccessWatch, 'open'>) {
    this.#access = access;
  }

  /** Counts a stream to the pod. Its signal aborts when the user loses access. Throws {@link PortError}. */
  open(user: PrincipalRef, podUid: string): { signal: AbortSignal; close(): void } {
    if (this.#perTenant.take(user.namespace, 1) !== 'taken') {
      throw tooMany('As many connections to the instances of this tenant as a replica takes');
    }
    if (this.#perPod.take(podUid, 1, MAX_PER_POD) !== 'taken') {
      this.#perTenant.give(user.namespace, 1);
      throw tooMany(`${MAX_PER_POD} connections to this instance`);
    }
    const cut = new AbortController();
    this.#streams.add(cut);
    const access = this.#access.open(user, PORT_USE);
    const close = (): void => {
      if (!this.#streams.delete(cut)) return;
      access.close();
      this.#perTenant.give(user.namespace, 1);
      this.#perPod.give(podUid, 1);
    };
    return { signal: AbortSignal.any([access.signal, cut.signal]), close };
  }

  close(): void {
    for (const cut of this.#streams) cut.abort();
  }
}

function tooMany(what: string): PortError {
  return new PortError('too_many_streams', `${what} are open, and no more are allowed. Close one.`);
}
