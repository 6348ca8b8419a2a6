import type { KubeClient } from '../../src/kube/client/client.ts';
import { AlreadyExistsError, ConflictError, NotFoundError, TransportError } from '../../src/kube/errors.ts';
import type { Lease } from '../../src/kube/types.ts';

/** One Lease with the API server's rules for versions, shared by any number of candidates. */
export function leaseServer() {
  let stored: Lease | undefined;
  let version = 0;
  let down = false;
  let hanging = false;
  const calls: string[] = [];

  async function answer(verb: string, signal: AbortSignal | undefined): Promise<void> {
    calls.push(verb);
    if (down) throw new TransportError({ message: 'refused', status: 0, reason: 'ECONNREFUSED' });
    signal?.throwIfAborted();
    if (!hanging) return;
    await new Promise((_resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    });
  }

  function store(lease: Lease): Lease {
    version += 1;
    stored = structuredClone({ ...lease, metadata: { ...lease.metadata, resourceVersion: String(version) } });
    return structuredClone(stored);
  }

  const client: Pick<KubeClient, 'get' | 'create' | 'replace'> = {
    async get(_type, _ref, options) {
      await answer('get', options?.signal);
      if (!stored) throw new NotFoundError({ message: 'none', status: 404, reason: 'NotFound' });
      return structuredClone(stored) as never;
    },
    async create(_type, lease, options) {
      await answer('create', options?.signal);
      if (stored) throw new AlreadyExistsError({ message: 'exists', status: 409, reason: 'AlreadyExists' });
      return store(lease) as never;
    },
    async replace(_type, lease, options) {
      await answer('replace', options?.signal);
      if (stored?.metadata.resourceVersion !== lease.metadata.resourceVersion) {
        throw new ConflictError({ message: 'conflict', status: 409, reason: 'Conflict' });
      }
      return store(lease) as never;
    },
  };
  return {
    client: client as KubeClient,
    calls,
    /** Refuses connections. */
    setDown(value: boolean): void {
      down = value;
    },
    /** Takes requests and never answers. */
    setHanging(value: boolean): void {
      hanging = value;
    },
    /** Writes as somebody else would. */
    edit(change: (spec: NonNullable<Lease['spec']>) => void): void {
      if (!stored) throw new Error('there is no lease');
      const copy = structuredClone(stored);
      change((copy.spec ??= {}));
      store(copy);
    },
    get spec() {
      return stored?.spec;
    },
  };
}
