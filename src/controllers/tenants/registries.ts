import type { Logger } from 'pino';
import type { KubeClient } from '../../kube/client/client.ts';
import { ForbiddenError, NotFoundError } from '../../kube/errors.ts';
import { keyOf, SECRETS } from '../../kube/types.ts';
import { FINALIZER } from '../../resources/cleanup.ts';
import { REGISTRY_CREDENTIALS, type RegistryCredential } from '../../resources/registry-credential.ts';
import { Controller } from '../../runtime/controller.ts';
import { Fence } from '../../runtime/fence.ts';
import { storeSource } from '../../runtime/source.ts';
import { type CommonDeps, RECONCILE_TIMEOUT_MS } from '../common-deps.ts';

interface RegistryDeps {
  client: Pick<KubeClient, 'patch' | 'delete'>;
  stores: Pick<CommonDeps['stores'], 'registries'>;
  fence: Pick<Fence, 'wrote'>;
  log: Logger;
}

/** What to do about credentials: keep them until their Secret is gone, remove it and let them go, or nothing. */
function registryStep({ metadata }: RegistryCredential): 'hold' | 'remove' | undefined {
  const isHeld = metadata.finalizers?.includes(FINALIZER) === true;
  if (metadata.deletionTimestamp === undefined) return isHeld ? undefined : 'hold';
  return isHeld ? 'remove' : undefined;
}

/**
 * Deletes the Secret of credentials before they go, whoever deletes them and however. Kubernetes deletes it too where the
 * credentials own it: not after `kubectl delete --cascade=orphan`, nor after a restore that forgot the owner.
 */
export async function reconcileRegistry(
  { client, stores, fence, log }: RegistryDeps,
  key: string,
  signal: AbortSignal,
): Promise<void> {
  const record = stores.registries.get(key);
  const step = record && registryStep(record);
  if (record === undefined || step === undefined) return;
  const { namespace, name, uid, finalizers } = record.metadata;
  const others = (finalizers ?? []).filter((one) => one !== FINALIZER);
  if (step === 'remove') {
    try {
      await client.delete(SECRETS, { namespace, name }, { signal });
    } catch (error) {
      // A Secret of the tenant's own has the name: the policy of the chart lets Berth delete no other but its own.
      if (!(error instanceof ForbiddenError)) throw error;
      log.warn({ err: error, credentials: key }, 'A Secret of the name of registry credentials was not deleted');
    }
  }
  const body = [
    { op: 'test', path: '/metadata/uid', value: uid },
    // A missing path equals null.
    { op: 'test', path: '/metadata/finalizers', value: finalizers ?? null },
    { op: 'add', path: '/metadata/finalizers', value: step === 'hold' ? [...others, FINALIZER] : others },
  ];
  try {
    const after = await client.patch(REGISTRY_CREDENTIALS, { namespace, name }, body, { type: 'json', signal });
    fence.wrote(key, stores.registries, after);
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
  }
}

const WORKERS = 2;

/** Keeps credentials of registries until the Secret that Berth made of them is gone. */
export function createRegistryController(deps: CommonDeps): Controller {
  const { clock, log, stores } = deps;
  const fence = new Fence(clock, log);
  return new Controller({
    name: 'registries',
    sources: [storeSource(stores.registries, (record) => (registryStep(record) === undefined ? [] : [keyOf(record)]))],
    reconcile: (key, { signal }) => reconcileRegistry({ ...deps, fence }, key, signal),
    concurrency: WORKERS,
    timeoutMs: RECONCILE_TIMEOUT_MS,
    fence,
    clock,
    log,
    metrics: deps.metrics('registries', WORKERS),
  });
}
