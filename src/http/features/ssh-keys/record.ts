import { type SshKey, sshKeyId } from '../../../resources/ssh-key.ts';
import { parseSshPublicKey } from '../../../resources/ssh-public-key.ts';
import { timeText } from '../../interface/schema.ts';
import type { SshKeyRecord } from './schema.ts';

/** Type and fingerprint, from the key itself: its status may not be written yet. */
function factsOf({ spec, status }: SshKey): { type?: string; fingerprint?: string } | undefined {
  try {
    return parseSshPublicKey(spec.publicKey);
  } catch {
    // kubectl can apply text that is no key; the condition of the resource says so.
    return status;
  }
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
