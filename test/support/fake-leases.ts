import type { KubeClient } from '../../src/kube/client/client.ts';
import { NotFoundError } from '../../src/kube/errors.ts';
import { keyOf, type Lease, type ObjectRef } from '../../src/kube/types.ts';
import { isAsleep, LEASE_ASLEEP, LEASE_SERVICE, modelLeaseName } from '../../src/resources/model-servers/lease.ts';
import { FakeStore } from './fake-store.ts';

type Patch = { metadata?: { annotations?: Record<string, string | null> }; spec?: Lease['spec'] };

/** The Leases of model servers, as the API server has them, and a client that merges patches into them. */
export class FakeLeases {
  readonly store = new FakeStore<Lease>();
  readonly patches: Patch[] = [];
  #version = 0;

  /** As the controller made it: asleep. */
  sleep(uid: string, annotations: Record<string, string> = {}): void {
    const name = modelLeaseName(uid);
    const lease: Lease = {
      metadata: { namespace: 'berth-system', name, annotations: { [LEASE_SERVICE]: 'x/y', ...annotations } },
      spec: {},
    };
    const asleep = { [LEASE_ASLEEP]: 'never' };
    this.#put({ ...lease, metadata: { ...lease.metadata, annotations: { ...lease.metadata.annotations, ...asleep } } });
  }

  lease(uid: string): Lease {
    const lease = this.store.get(`berth-system/${modelLeaseName(uid)}`);
    if (lease === undefined) throw new Error(`There is no Lease of ${uid}.`);
    return lease;
  }

  isAsleep(uid: string): boolean {
    return isAsleep(this.lease(uid));
  }

  note(uid: string, annotations: Record<string, string | null>): void {
    this.#merge(this.lease(uid), { metadata: { annotations } });
  }

  get renewals(): number {
    return this.patches.filter(({ spec }) => spec?.renewTime !== undefined).length;
  }

  get client(): Pick<KubeClient, 'patch'> {
    return {
      patch: (_type, ref: ObjectRef, body: unknown) => {
        const lease = this.store.get(keyOf(ref));
        if (lease === undefined)
          return Promise.reject(new NotFoundError({ message: 'no such Lease', status: 404, reason: 'NotFound' }));
        this.patches.push(body as Patch);
        return Promise.resolve(this.#merge(lease, body as Patch) as never);
      },
    };
  }

  #merge(lease: Lease, { metadata, spec }: Patch): Lease {
    const annotations = { ...lease.metadata.annotations };
    for (const [name, value] of Object.entries(metadata?.annotations ?? {})) {
      if (value === null) delete annotations[name];
      else annotations[name] = value;
    }
    return this.#put({ ...lease, metadata: { ...lease.metadata, annotations }, spec: { ...lease.spec, ...spec } });
  }

  #put(lease: Lease): Lease {
    this.#version += 1;
    const stored = { ...lease, metadata: { ...lease.metadata, resourceVersion: String(this.#version) } };
    this.store.put(stored);
    return stored;
  }
}
