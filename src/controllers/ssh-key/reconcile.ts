import { keyOf } from '../../kube/types.ts';
import { numericId } from '../../resources/ids.ts';
import { SSH_KEYS, type SshKey } from '../../resources/ssh-key.ts';
import { type Source, storeSource } from '../../runtime/source.ts';
import { changeSource } from '../change-source.ts';
import { type ControllerStores } from '../stores.ts';
import type { StatusRun } from '../common-deps.ts';
import { patchStatus } from '../write-status.ts';
import { sshKeyStatus } from './status.ts';

function keysIn(stores: ControllerStores, namespace: string | undefined): readonly SshKey[] {
  return stores.sshKeys.by('namespace', namespace ?? '');
}

/** Numbers of the keys that an instance names. */
function named(ids: readonly number[] | undefined): string {
  return (ids ?? []).join();
}

/** Keys, and the keys that an instance named or names when that changed. */
export function sshKeySources(stores: ControllerStores): Source[] {
  return [
    storeSource(stores.sshKeys, (key) => [keyOf(key)]),
    changeSource(stores.instances, ({ before, after }) => {
      if (named(before?.spec.sshKeyIds) === named(after?.spec.sshKeyIds)) return [];
      const ids = new Set([...(before?.spec.sshKeyIds ?? []), ...(after?.spec.sshKeyIds ?? [])]);
      const keys = keysIn(stores, (after ?? before)?.metadata.namespace);
      return keys.filter(({ metadata }) => ids.has(numericId(metadata.uid ?? ''))).map(keyOf);
    }),
  ];
}

/** Keeps id, type, fingerprint, validity and use of a key in its status. */
export async function reconcileSshKey({ deps, key, context }: StatusRun): Promise<void> {
  const { stores, client, clock } = deps;
  const sshKey = stores.sshKeys.get(key);
  if (sshKey === undefined || sshKey.metadata.deletionTimestamp !== undefined) return;
  const id = numericId(sshKey.metadata.uid ?? '');
  const { namespace, name, creationTimestamp = '' } = sshKey.metadata;
  const older = keysIn(stores, namespace).find(
    ({ metadata }) =>
      metadata.name !== name &&
      numericId(metadata.uid ?? '') === id &&
      (metadata.creationTimestamp ?? '') <= creationTimestamp,
  );
  const instances = stores.instances
    .by('namespace', namespace ?? '')
    .filter(({ spec }) => spec.sshKeyIds?.includes(id)).length;
  const status = sshKeyStatus(sshKey, { instances, clash: older?.metadata.name, now: clock.now() });
  await patchStatus(client, SSH_KEYS, sshKey, { status, signal: context.signal });
}
