import { z } from 'zod';
import { deletedOf, LIMITS, listOf, named, textSchema, timeSchema } from '../../interface/schema.ts';

export const createSshKeySchema = named(
  'CreateSSHKey',
  z
    .strictObject({
      public_key: textSchema()
        .min(1)
        .max(LIMITS.publicKey)
        .describe('One line as in a .pub file: type, base64 key, optional comment.'),
      name: textSchema().max(LIMITS.name).describe('Name for people.'),
    })
    .describe('An SSH public key to register.'),
);

export const sshKeySchema = named(
  'SSHKey',
  z
    .object({
      id: z.int().min(1).describe('Send it in ssh_key_ids.'),
      object: z.literal('ssh_key'),
      name: z.string(),
      public_key: z.string(),
      fingerprint: z.string().describe('SHA256 fingerprint as ssh-keygen -lf prints it.'),
      type: z.string().describe('Key type, for example ssh-ed25519.'),
      created_at: timeSchema,
    })
    .describe('A registered SSH public key.'),
);

export const sshKeyListSchema = named('SSHKeyList', listOf(sshKeySchema));
export const deletedSshKeySchema = named('DeletedSSHKey', deletedOf(z.int(), 'ssh_key'));

export type SshKeyRecord = z.infer<typeof sshKeySchema>;
