import type { SshKey } from '../../resources/ssh-key.ts';
import { numericId } from '../../resources/ids.ts';
import type { SshKeyRecord } from '../schemas/ssh-key.ts';
import { timeText } from '../schemas/common.ts';

/** What a parser finds out about a public key. */
export interface KeyFacts {
  type: string;
  fingerprint: string;
}

/** An SSH key as the API shows it. Type and fingerprint come from the key itself: its status may not be written yet. */
export function toSshKeyRecord(key: SshKey, facts: KeyFacts | undefined): SshKeyRecord {
  return {
    id: sshKeyId(key),
    object: 'ssh_key',
    name: key.spec.displayName ?? '',
    public_key: key.spec.publicKey,
    fingerprint: facts?.fingerprint ?? key.status?.fingerprint ?? '',
    type: facts?.type ?? key.status?.type ?? '',
    created_at: timeText(key.metadata.creationTimestamp),
  };
}

/** The number that the API knows a key by. */
export function sshKeyId(key: SshKey): number {
  return numericId(key.metadata.uid ?? '');
}
