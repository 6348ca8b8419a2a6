import type { Namespace } from '../kube/types.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import { tenancyRefusal, type TenancyRules } from '../resources/tenants/tenancy.ts';

/** What stands for a tenant: a namespace that is made anew under the name of another is another tenant. */
export type TenantId = (namespace: string) => string;

/** The UIDs of namespaces. Of one that no cache shows, the name. */
export function tenantIds(namespaces: Pick<ReadStore<Namespace>, 'get'>): TenantId {
  return (namespace) => namespaces.get(namespace)?.metadata.uid ?? namespace;
}

/** Which namespaces are tenants, as the cluster says now. */
export class Tenants {
  readonly #namespaces: ReadStore<Namespace>;
  readonly #rules: TenancyRules;

  constructor(namespaces: ReadStore<Namespace>, rules: TenancyRules) {
    this.#namespaces = namespaces;
    this.#rules = rules;
  }

  /** False until the first list of namespaces has arrived: until then nobody is a tenant. */
  get isKnown(): boolean {
    return this.#namespaces.hasSynced;
  }

  /** Whether the namespace is gone or going: its keys are over. */
  isGone(name: string): boolean {
    const namespace = this.#namespaces.get(name);
    return namespace === undefined || namespace.metadata.deletionTimestamp !== undefined;
  }

  /** Why the namespace is no tenant, to be read after "because"; undefined for a tenant. */
  refusal(name: string): string | undefined {
    const namespace = this.#namespaces.get(name);
    return namespace === undefined ? `namespace ${name} is gone.` : tenancyRefusal(namespace, this.#rules);
  }

  /** Calls back with the name of each namespace that changed. Returns the unsubscribe function. */
  onChange(listener: (name: string) => void): () => void {
    return this.#namespaces.onChange(({ key }) => listener(key));
  }
}
