import type { Finding } from '../../kube/conditions.ts';
import { keyOf } from '../../kube/types.ts';
import { sshKeyIndexKey } from '../../caches/indexes.ts';
import { numericId } from '../../resources/ids.ts';
import { publicKeyOf, SSH_KEYS, type SshKey } from '../../resources/ssh-key.ts';
import { type SshPublicKey, SshPublicKeyError } from '../../resources/ssh-public-key.ts';
import type { Source } from '../../runtime/source.ts';
import { changeSource } from '../change-source.ts';
import { readyStatus, type StatusKind } from './status-controller.ts';
import type { ControllerStores } from '../stores.ts';

function idOf({ metadata }: SshKey): number {
  return numericId(metadata.uid ?? '');
}

/** The keys that an instance named or names, when that changed. */
function instanceSource({ instances, sshKeys }: ControllerStores): Source {
  return changeSource(instances, ({ before, after }) => {
    const [old = [], named = []] = [before?.spec.sshKeyIds, after?.spec.sshKeyIds];
    if (old.join() === named.join()) return [];
    const ids = new Set([...old, ...named]);
    const { namespace } = (after ?? before)?.metadata ?? {};
    return [...ids].flatMap((id) => sshKeys.by('id', sshKeyIndexKey(namespace, id)).map(keyOf));
  });
}

/** Name of an older key of the namespace that has the same numeric id. */
function clashOf(key: SshKey, { sshKeys }: ControllerStores): string | undefined {
  const { namespace = '', name, creationTimestamp = '' } = key.metadata;
  const older = sshKeys
    .by('id', sshKeyIndexKey(namespace, idOf(key)))
    .find(({ metadata: other }) => other.name !== name && (other.creationTimestamp ?? '') <= creationTimestamp);
  return older?.metadata.name;
}

function validity(facts: SshPublicKey | SshPublicKeyError, clash: string | undefined): Omit<Finding, 'type'> {
  if (facts instanceof SshPublicKeyError) return { status: 'False', reason: 'InvalidKey', message: facts.message };
  if (clash !== undefined) {
    const message = `SSHKey ${clash} has the same id. Delete this key and create it again.`;
    return { status: 'False', reason: 'IdClash', message };
  }
  return { status: 'True', reason: 'Valid', message: `${facts.bits} bits. The key opens instances.` };
}

/** Shows id, type, fingerprint, validity and use of a key. */
export function sshKeyStatus(stores: ControllerStores): StatusKind<SshKey> {
  return {
    name: 'sshkey',
    type: SSH_KEYS,
    store: stores.sshKeys,
    sources: [instanceSource(stores)],
    statusOf(key, now) {
      const facts = publicKeyOf(key);
      const id = idOf(key);
      const instances = stores.instances.by('namespace', key.metadata.namespace ?? '');
      return {
        ...readyStatus(key, validity(facts, clashOf(key, stores)), now),
        id,
        ...(!(facts instanceof SshPublicKeyError) && { type: facts.type, fingerprint: facts.fingerprint }),
        instances: instances.filter(({ spec }) => spec.sshKeyIds?.includes(id)).length,
      };
    },
  };
}
