import { publicKeyOf, type SshKey, sshKeyId } from '../../../resources/ssh-key.ts';
import { SshPublicKeyError } from '../../../resources/ssh-public-key.ts';
import { timeText } from '../../interface/schema.ts';
import type { SshKeyRecord } from './schema.ts';

/** Type and fingerprint, from the key itself: its status may not be written yet. */
function factsOf(key: SshKey): { type?: string; fingerprint?: string } | undefined {
  const facts = publicKeyOf(key);
  // kubectl can apply text that is no key; the condition of the resource says so.
  return facts instanceof SshPublicKeyError ? key.status : facts;
}

export function toSshKeyRecord(key: SshKey): SshKeyRecord {
  const { type = '', fingerprint = '' } = factsOf(key) ?? {};
  return {
    id: sshKeyId(key),
    object: 'ssh_key',
    name: key.spec.displayName ?? '',
    public_key: key.spec.publicKey,
    fingerprint,
    type,
    created_at: timeText(key.metadata.creationTimestamp),
  };
}
