import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { newEd25519Key } from '../../src/ssh/login/ed25519-key.ts';
import { cacheFolder } from '../../tools/lib/paths.ts';
import { run } from '../../tools/lib/shell.ts';
import { debFiles, unpackDeb } from '../../tools/release/image/debian.ts';
import type { SshClient } from './ssh-client.ts';
import { waitFor } from './wait-for.ts';

export const SSHD_PORT = 2222;
const HOME = '/opt/sshd';

/** As Debian has it, but for PAM, whose session needs rights that no container has. */
const CONFIG = [
  `Port ${SSHD_PORT}`,
  'ListenAddress 127.0.0.1',
  `HostKey ${HOME}/host-key`,
  `AuthorizedKeysFile ${HOME}/authorized-keys`,
  'StrictModes no',
  'UsePAM no',
  'PidFile none',
  'PrintMotd no',
  'AcceptEnv LANG LC_*',
  'Subsystem sftp internal-sftp',
];

/** sshd of this machine's distribution, its libraries and their loader, so that it runs in any image. */
async function packSshd(folder: string, publicKey: string): Promise<Buffer> {
  const [root, packed] = [join(folder, 'sshd'), join(folder, 'packed')];
  for (const deb of await debFiles(['openssh-server', 'libwrap0'], cacheFolder(process.env)))
    await unpackDeb(deb, root);
  mkdirSync(join(packed, 'lib'), { recursive: true });
  const program = join(root, 'usr/sbin/sshd');
  const own = ['usr/lib', 'lib'].flatMap((name) => readdirSync(join(root, name)).map((of) => join(root, name, of)));
  const env = { ...process.env, LD_LIBRARY_PATH: own.join(':') };
  const { stdout } = await run('ldd', [program], { env });
  for (const [path] of stdout.matchAll(/\/\S+\.so\S*/g)) copyFileSync(path, join(packed, 'lib', basename(path)));
  copyFileSync(program, join(packed, 'program'));
  writeFileSync(join(packed, 'host-key'), newEd25519Key('').private, { mode: 0o600 });
  writeFileSync(join(packed, 'authorized-keys'), `${publicKey}\n`);
  writeFileSync(join(packed, 'config'), `${CONFIG.join('\n')}\n`);
  const archive = join(folder, 'sshd.tar');
  await run('tar', ['-cf', archive, '--owner=0', '--group=0', '-C', packed, '.']);
  return readFileSync(archive);
}

const INSTALL = `mkdir -p ${HOME} /run/sshd && tar -xf - -C ${HOME} &&
echo 'sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin' >>/etc/passwd`;

// The loader runs it, so it cannot start itself anew for a connection (-r).
const START = `umask 022; exec ${HOME}/lib/ld-linux-*.so.* --library-path ${HOME}/lib ${HOME}/program -r -D -e -f ${HOME}/config`;

/** Starts sshd beside the programs of an instance: with the same image, files, user and limits. Returns what ends it. */
export async function startSshdIn(
  client: SshClient,
  instance: string,
  { folder, publicKey }: { folder: string; publicKey: string },
): Promise<() => Promise<void>> {
  const archive = await packSshd(folder, publicKey);
  const installed = await client.ssh(instance, INSTALL, { input: archive });
  if (installed.code !== 0) throw new Error(`sshd was not installed: ${installed.stderr}`);
  const child = client.start(instance, START);
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  await waitFor('sshd in the instance', () => {
    if (child.exitCode !== null) throw new Error(`sshd ended: ${said}`);
    return said.includes('Server listening');
  });
  return () => ended(child);
}

async function ended(child: ChildProcess): Promise<void> {
  const closed = once(child, 'close');
  child.kill();
  await closed;
}
