import { z } from 'zod';
import type { KubeObject } from '../kube/types.ts';
import { numericId } from './ids.ts';
import { parseSshPublicKey, type SshPublicKey, SshPublicKeyError } from './ssh-public-key.ts';
import { AGE_COLUMN, berthType, conditionsSchema, withRules, type CustomResource } from './schema.ts';

export const MAX_NAME_LENGTH = 128;
/** A type and the key in base64, after options and before a comment. */
const KEY_SHAPE = String.raw`(^|[ \t])[a-z0-9@.-]+[ \t]+[A-Za-z0-9+/]+={0,2}([ \t]|$)`;

export const sshKeySpecSchema = withRules(
  z.object({
    publicKey: z
      .string()
      .min(1)
      .max(16384)
      .describe(
        'One line as in authorized_keys: type, base64 key, optional comment. After the option cert-authority it is a key that signs certificates of users; principals="…" names the users that they must be for.',
      ),
    displayName: z.string().max(MAX_NAME_LENGTH).default('').describe('Name for people.'),
  }),
  {
    rule: 'self.publicKey == oldSelf.publicKey',
    message: 'publicKey cannot change: create another SSHKey and delete this one',
    fieldPath: '.publicKey',
  },
  {
    rule: "!self.publicKey.contains('\\n') && !self.publicKey.contains('\\r')",
    message: 'publicKey must be one line: paste the content of one .pub file',
    fieldPath: '.publicKey',
  },
  {
    rule: "!self.publicKey.contains('PRIVATE KEY')",
    message: 'this is a private key, which nobody else may see: paste the .pub file instead',
    fieldPath: '.publicKey',
  },
  {
    rule: `self.publicKey.matches(${JSON.stringify(KEY_SHAPE)})`,
    message: 'publicKey must be one line of authorized_keys: type, base64 key, optional comment',
    fieldPath: '.publicKey',
  },
);

export const sshKeyStatusSchema = z.object({
  observedGeneration: z.int().optional().describe('metadata.generation that the status is for.'),
  conditions: conditionsSchema.optional(),
  id: z.int().optional().describe('Numeric id: ssh_key_ids of the HTTP interface.'),
  type: z.string().optional().describe('Key type, for example ssh-ed25519.'),
  fingerprint: z.string().optional().describe('SHA256 fingerprint as ssh-keygen -lf prints it.'),
  instances: z.int().optional().describe('How many instances name this key. It opens those that name no key, too.'),
});

export type SshKeySpec = z.infer<typeof sshKeySpecSchema>;
export type SshKeyStatus = z.infer<typeof sshKeyStatusSchema>;
export interface SshKey extends KubeObject {
  spec: SshKeySpec;
  status?: SshKeyStatus;
}

export const SSH_KEYS = berthType<SshKey>('SSHKey', 'sshkeys');

export const sshKeyResource: CustomResource = {
  ...SSH_KEYS,
  shortNames: ['sk'],
  description: 'A public key that opens the instances of its namespace over SSH.',
  columns: [
    { name: 'ID', type: 'integer', jsonPath: '.status.id' },
    { name: 'Name', type: 'string', jsonPath: '.spec.displayName' },
    { name: 'Type', type: 'string', jsonPath: '.status.type' },
    { name: 'Fingerprint', type: 'string', jsonPath: '.status.fingerprint' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    { name: 'Named by', type: 'integer', jsonPath: '.status.instances' },
    AGE_COLUMN,
  ],
  spec: sshKeySpecSchema,
  status: sshKeyStatusSchema,
};

const parsed = new WeakMap<SshKey, SshPublicKey | SshPublicKeyError>();

/** The parsed key, or why it is none. Each version of an object is parsed once. */
export function publicKeyOf(key: SshKey): SshPublicKey | SshPublicKeyError {
  const known = parsed.get(key) ?? tryParse(key.spec.publicKey);
  parsed.set(key, known);
  return known;
}

function tryParse(line: string): SshPublicKey | SshPublicKeyError {
  try {
    return parseSshPublicKey(line);
  } catch (error) {
    if (error instanceof SshPublicKeyError) return error;
    throw error;
  }
}

/** The number that the API knows a key by. */
export function sshKeyId(key: SshKey): number {
  return numericId(key.metadata.uid ?? '');
}

/** What a login finds a key by, in an index of the cache: the namespace, and the fingerprint as ssh-keygen -lf prints it. */
export function fingerprintKey(namespace: string, fingerprint: string): string {
  return `${namespace}/${fingerprint}`;
}

/** The {@link fingerprintKey} of a key; none of a text that is no key. */
export function fingerprintKeysOf(key: SshKey): string[] {
  const read = publicKeyOf(key);
  return read instanceof SshPublicKeyError ? [] : [fingerprintKey(key.metadata.namespace ?? '', read.fingerprint)];
}
