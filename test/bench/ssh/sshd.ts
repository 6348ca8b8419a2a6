import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { newEd25519Key } from '../../../src/ssh/login/ed25519-key.ts';
import { freePorts } from '../../../tools/lib/free-ports.ts';
import { cacheFolder } from '../../../tools/lib/paths.ts';
import { debFiles, unpackDeb } from '../../../tools/release/image/debian.ts';
import { waitFor } from '../../support/wait-for.ts';

/** OpenSSH's server on this machine, without a gateway or a pod: the most that an SSH client gets here. */
export interface Sshd {
  port: number;
  stop(): Promise<void>;
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

/**
 * Starts it on the loopback for one public key, with the cipher that the gateway has. It comes out of Debian's package,
 * which is not installed: that would leave a server behind. Its user and its folder are those of a mount namespace.
 */
export async function startSshd(folder: string, publicKey: string): Promise<Sshd> {
  const root = join(folder, 'sshd');
  for (const deb of await debFiles(['openssh-server', 'libwrap0'], cacheFolder(process.env)))
    await unpackDeb(deb, root);
  const [port = 0] = await freePorts(1);
  const write = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  const config = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${write('sshd-host-key', newEd25519Key('').private)}`,
    `AuthorizedKeysFile ${write('sshd-authorized-keys', `${publicKey}\n`)}`,
    'StrictModes no',
    'UsePAM no',
    'PidFile none',
    'Ciphers aes128-gcm@openssh.com',
    'Subsystem sftp internal-sftp',
  ];
  const users = readFileSync('/etc/passwd', 'utf8');
  const passwd = write('sshd-passwd', `${users}sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n`);
  // In folders with the name of the architecture.
  const libraries = ['usr/lib', 'lib'].flatMap((name) =>
    readdirSync(join(root, name)).map((of) => join(root, name, of)),
  );
  const script = [
    `chmod 644 ${passwd}`,
    `mount --bind ${passwd} /etc/passwd`,
    'mount -t tmpfs none /run',
    'mkdir -m 755 /run/sshd',
    `LD_LIBRARY_PATH=${libraries.join(':')} exec ${join(root, 'usr/sbin/sshd')} -D -f ${write('sshd-config', `${config.join('\n')}\n`)}`,
  ].join(' && ');
  const command = ['--pdeathsig', 'KILL', 'unshare', '--mount', 'sh', '-c', script];
  const child = spawn('setpriv', command, { stdio: ['ignore', 'ignore', 'inherit'] });
  const closed = once(child, 'close');
  await waitFor('sshd', () => listens(port));
  return {
    port,
    stop: async () => {
      child.kill();
      await closed;
    },
  };
}
