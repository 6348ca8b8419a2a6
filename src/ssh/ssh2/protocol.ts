import type { Server } from 'ssh2';
import { ssh2 } from './load.ts';

export type { AuthContext, Connection, ServerChannel, Session } from 'ssh2';

const KEEPALIVE_INTERVAL_MS = 15_000;
const KEEPALIVE_MISSES = 3;
const GCM = ['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com'] as const;
const CTR = ['aes128-ctr', 'aes192-ctr', 'aes256-ctr'] as const;

/**
 * The SSH protocol without a listening socket. The client's order of ciphers decides (RFC 4253 section 7.1), and
 * OpenSSH puts AES-GCM last, although it is the fastest here. OpenSSH has had GCM since 6.2, so it is offered nothing
 * else (`gcmOnly`); other clients get CTR as well. Compression is not offered: it allows decompression bombs, before
 * the login too. Key exchanges that cost the server more than a millisecond are not offered, because every stranger can
 * ask for one: group16 costs four and nistp521 five. `hostKey` is a private key in OpenSSH's format.
 */
export function protocolServer(hostKey: string, { gcmOnly }: { gcmOnly: boolean }): Server {
  return new ssh2.Server({
    hostKeys: [hostKey],
    ident: 'Berth',
    keepaliveInterval: KEEPALIVE_INTERVAL_MS,
    keepaliveCountMax: KEEPALIVE_MISSES,
    algorithms: {
      cipher: gcmOnly ? [...GCM] : [...GCM, ...CTR],
      kex: ['curve25519-sha256', 'curve25519-sha256@libssh.org', 'ecdh-sha2-nistp256', 'diffie-hellman-group14-sha256'],
      serverHostKey: ['ssh-ed25519'],
      hmac: ['hmac-sha2-256-etm@openssh.com', 'hmac-sha2-512-etm@openssh.com', 'hmac-sha2-256', 'hmac-sha2-512'],
      compress: ['none'],
    },
  });
}

/** What clients may sign their logins with: the types of `verifierOf`, security keys, and RSA with SHA-2 alone. */
export const SIGNATURES = [
  'ssh-ed25519',
  'sk-ssh-ed25519@openssh.com',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'sk-ecdsa-sha2-nistp256@openssh.com',
  'rsa-sha2-512',
  'rsa-sha2-256',
];

/** Verifies signatures of one public key: with the name of the hash for RSA, which is undefined for SHA-1. */
export type Verify = (data: Buffer, signature: Buffer, hash: string | undefined) => boolean;

/** Reads a public key in the form of authorized_keys. Undefined for types whose signatures ssh2 cannot verify. */
export function verifierOf(publicKey: string): Verify | undefined {
  const parsed = ssh2.utils.parseKey(publicKey);
  if (parsed instanceof Error) return undefined;
  // ssh2 answers a malformed signature with an Error, which its types do not say.
  return (data, signature, hash) => Object.is(parsed.verify(data, signature, hash), true);
}
