import type { ReadStore } from '../../kube/watch/store.ts';
import { keyOf, type KubeObject } from '../../kube/types.ts';
import { instanceNameOfDisk, isOfBerth } from '../../resources/pod/disk.ts';
import { TENANT_LIMIT_NAME } from '../../resources/tenants/tenant-limit.ts';
import type { TenantPolicy } from '../../resources/tenants/tenant-policy.ts';
import { type Source, storeSource } from '../../runtime/source.ts';
import { cameOrWent, changeSource } from '../change-source.ts';
import type { ControllerStores } from '../stores.ts';
import { doesCover } from './tenant-ceilings.ts';
import { Controller } from '../../runtime/controller.ts';
import { Fence } from '../../runtime/fence.ts';
import { type CommonDeps, RECONCILE_TIMEOUT_MS } from '../common-deps.ts';
import { PullSecrets, type PullSecretDeps } from './pull-secret.ts';
import { reconcileTenant, type TenantDeps, UncountedQuotas } from './reconcile.ts';

/** Everything that makes the controller look at a namespace. Keys are names of namespaces. */
export function tenantSources(stores: ControllerStores): Source[] {
  const { namespaces, tenantPolicies } = stores;

  /** Whether a namespace is in use changes with the objects in it. */
  const inUse = <T extends KubeObject>(store: ReadStore<T>): Source =>
    changeSource(store, (change) =>
      cameOrWent(change) ? [(change.after ?? change.before)?.metadata.namespace ?? ''] : [],
    );
  /** What the controller wrote, when it changes. */
  const written = <T extends KubeObject>(store: ReadStore<T>): Source =>
    changeSource(store, ({ before, after }) => {
      const { name, namespace = '' } = (after ?? before)?.metadata ?? {};
      return name === TENANT_LIMIT_NAME ? [namespace] : [];
    });
  /** A disk is kept when its instance goes, so what else happens to disks of instances changes nothing. */
  const maybeKept = changeSource(stores.disks, ({ before, after }) => {
    const disk = after ?? before;
    if (disk === undefined || !isOfBerth(disk)) return [];
    const { namespace = '' } = disk.metadata;
    const name = instanceNameOfDisk(disk) ?? '';
    return stores.instances.get(keyOf({ namespace, name })) === undefined ? [namespace] : [];
  });
  const covered = (policy: TenantPolicy | undefined): string[] => {
    if (policy === undefined) return [];
    const all = [...namespaces.values()];
    return all.filter(({ metadata }) => doesCover(policy, metadata.labels ?? {})).map(({ metadata }) => metadata.name);
  };

  return [
    storeSource(namespaces, ({ metadata }) => [metadata.name]),
    changeSource(tenantPolicies, ({ before, after }) =>
      isSameSpec(before, after) ? [] : [...covered(before), ...covered(after)],
    ),
    inUse(stores.instances),
    inUse(stores.sshKeys),
    inUse(stores.apiKeys),
    inUse(stores.templates),
    maybeKept,
    written(stores.tenantLimits),
    written(stores.quotas),
  ];
}

/** Whether only the status of a policy changed, or its metadata. */
function isSameSpec(before: TenantPolicy | undefined, after: TenantPolicy | undefined): boolean {
  if (before?.metadata.generation === undefined || before.metadata.uid !== after?.metadata.uid) return false;
  return before.metadata.generation === after?.metadata.generation;
}

const WORKERS = 4;

/** Keeps a TenantLimit, a ResourceQuota and credentials for Berth's images in the namespace of each tenant. */
export function createTenantController(deps: CommonDeps & TenantDeps & PullSecretDeps): Controller {
  const { clock, log, stores } = deps;
  const fence = new Fence(clock, log);
  const uncounted = new UncountedQuotas(clock);
  const pullSecrets = new PullSecrets(deps);
  return new Controller({
    name: 'tenant',
    sources: tenantSources(stores),
    reconcile: (namespace, { signal }) =>
      reconcileTenant({ ...deps, fence, uncounted, pullSecrets }, namespace, signal),
    concurrency: WORKERS,
    timeoutMs: RECONCILE_TIMEOUT_MS,
    fence,
    clock,
    log,
    metrics: deps.metrics('tenant', WORKERS),
  });
}
