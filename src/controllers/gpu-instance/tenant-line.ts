import { gpuRefusal } from '../../inventory/ceilings.ts';
import type { Inventory } from '../../inventory/inventory.ts';
import { compareRanks } from '../../caches/line-order.ts';
import type { GpuShare } from '../../inventory/tenant-holdings.ts';
import type { GpuInstance } from '../../resources/instances/gpu-instance.ts';
import type { AddKey, Source } from '../../runtime/source.ts';
import type { ControllerStores } from '../stores.ts';
import type { LimitOf } from '../tenants/tenant-ceilings.ts';

interface Deps {
  inventory: Pick<Inventory, 'heldBy' | 'onRelease'>;
  stores: Pick<ControllerStores, 'tenantLimits' | 'namespaces'>;
  ceilingsOf: LimitOf;
}

interface Waiter {
  instance: GpuInstance;
  wanted: GpuShare | undefined;
}

/**
 * The instances that a ceiling of their tenant refused. A claim that the tenant gives back wakes those of them that then
 * have room, the oldest first; a change of its TenantLimit wakes them all. Other tenants are never looked at.
 */
export class TenantLine {
  readonly #deps: Deps;
  /** By namespace, then by key. */
  readonly #waiters = new Map<string, Map<string, Waiter>>();
  #wake: AddKey | undefined;

  readonly source: Source;

  constructor(deps: Deps) {
    const { inventory, stores } = deps;
    this.#deps = deps;
    this.source = {
      synced: stores.tenantLimits.synced,
      start: (add) => {
        this.#wake = add;
        const stops = [
          inventory.onRelease((namespace) => this.serve(namespace)),
          stores.tenantLimits.onChange(({ before, after }) => {
            const { namespace = '' } = (after ?? before)?.metadata ?? {};
            this.wakeAll(namespace);
          }),
          // The ceilings of a namespace are not known before its labels.
          stores.namespaces.onChange(({ key, before }) => {
            if (before === undefined) this.wakeAll(key);
          }),
        ];
        return () => {
          this.#wake = undefined;
          for (const stop of stops) stop();
        };
      },
    };
  }

  /** @param wanted the GPUs that there was no room for; undefined when no release of GPUs can help */
  add(key: string, instance: GpuInstance, wanted: GpuShare | undefined): void {
    const { namespace = '' } = instance.metadata;
    const waiters = this.#waiters.get(namespace) ?? new Map<string, Waiter>();
    this.#waiters.set(namespace, waiters.set(key, { instance, wanted }));
  }

  remove(key: string): void {
    const namespace = key.slice(0, Math.max(0, key.indexOf('/')));
    const waiters = this.#waiters.get(namespace);
    if (waiters?.delete(key) && waiters.size === 0) this.#waiters.delete(namespace);
  }

  /** Wakes the instances of a tenant that its GPU ceilings have room for now, as far as they have room together. */
  serve(namespace: string): void {
    const waiters = this.#waiters.get(namespace);
    if (waiters === undefined || this.#wake === undefined) return;
    const limit = this.#deps.ceilingsOf(namespace);
    const held = [...this.#deps.inventory.heldBy(namespace)];
    for (const [key, { wanted }] of [...waiters].toSorted(([, a], [, b]) => compareRanks(a.instance, b.instance))) {
      if (wanted === undefined || gpuRefusal(limit, held, wanted) !== undefined) continue;
      held.push(wanted);
      this.#wake(key);
    }
  }

  /** Wakes every instance of a tenant that a ceiling or a budget refused. */
  wakeAll(namespace: string): void {
    for (const key of this.#waiters.get(namespace)?.keys() ?? []) this.#wake?.(key);
  }
}
