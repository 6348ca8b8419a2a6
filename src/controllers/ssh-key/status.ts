import type { Finding } from '../../kube/conditions.ts';
import { numericId } from '../../resources/ids.ts';
import { parseSshPublicKey, type SshPublicKey } from '../../resources/ssh-public-key.ts';
import type { SshKey, SshKeyStatus } from '../../resources/ssh-key.ts';
import { readyStatus } from '../write-status.ts';

function read(line: string): SshPublicKey | string {
  try {
    return parseSshPublicKey(line);
  } catch (error) {
    return error instanceof Error ? error.message : 'The key cannot be read.';
  }
}

function validity(facts: SshPublicKey | string, clash: string | undefined): Omit<Finding, 'type'> {
  if (typeof facts === 'string') return { status: 'False', reason: 'InvalidKey', message: facts };
  if (clash !== undefined) {
    const message = `The id is taken by SSHKey ${clash}. Delete this key and create it again.`;
    return { status: 'False', reason: 'IdClash', message };
  }
  return { status: 'True', reason: 'Valid', message: `${facts.bits} bits. The key opens instances.` };
}

/** Status of a key that `instances` instances name. `clash`: name of an older key that has the same numeric id. */
export function sshKeyStatus(
  key: SshKey,
  { instances, clash, now }: { instances: number; clash: string | undefined; now: number },
): SshKeyStatus {
  const facts = read(key.spec.publicKey);
  return {
    ...readyStatus(key, validity(facts, clash), now),
    id: numericId(key.metadata.uid ?? ''),
    ...(typeof facts === 'object' && { type: facts.type, fingerprint: facts.fingerprint }),
    instances,
  };
}
