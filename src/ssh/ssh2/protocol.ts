import ssh2 from 'ssh2';

export interface ProtocolOptions {
  /** Private key in OpenSSH's format. */
  hostKey: string;
  banner: string | undefined;
}

const KEEPALIVE_INTERVAL_MS = 15_000;
const KEEPALIVE_MISSES = 3;
const GCM = ['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com'] as const;
const CTR = ['aes128-ctr', 'aes192-ctr', 'aes256-ctr'] as const;

/**
 * The SSH protocol without a listening socket. The client's order of ciphers decides (RFC 4253 section 7.1), and OpenSSH
 * puts AES-GCM last although it is the fastest here. So OpenSSH, which has had GCM since 6.2, is offered nothing else
 * (`gcmOnly`); other clients get CTR as well. Compression is not offered: it is a decompression bomb before and after
 * login.
 */
export function protocolServer(options: ProtocolOptions, gcmOnly: boolean): ssh2.Server {
  return new ssh2.Server({
    hostKeys: [options.hostKey],
    ident: 'Berth',
    keepaliveInterval: KEEPALIVE_INTERVAL_MS,
    keepaliveCountMax: KEEPALIVE_MISSES,
    ...(options.banner === undefined ? {} : { banner: options.banner }),
    algorithms: {
      cipher: gcmOnly ? [...GCM] : [...GCM, ...CTR],
      kex: [
        'curve25519-sha256',
        'curve25519-sha256@libssh.org',
        'ecdh-sha2-nistp256',
        'ecdh-sha2-nistp384',
        'ecdh-sha2-nistp521',
        'diffie-hellman-group16-sha512',
        'diffie-hellman-group14-sha256',
      ],
      serverHostKey: ['ssh-ed25519'],
      hmac: ['hmac-sha2-256-etm@openssh.com', 'hmac-sha2-512-etm@openssh.com', 'hmac-sha2-256', 'hmac-sha2-512'],
      compress: ['none'],
    },
  });
}
