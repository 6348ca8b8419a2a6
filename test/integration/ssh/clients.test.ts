import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { run } from '../../../tools/lib/shell.ts';
import { debProgram } from '../../support/deb-program.ts';
import { describeWith } from '../../support/needs.ts';
import { pythonWith } from '../../support/python.ts';
import { DEBIAN } from '../../support/ssh-images.ts';
import { finished } from '../../support/ssh-client.ts';
import { sshWorld, type SshWorld } from '../../support/ssh-world.ts';

const onNode = describeWith('real node', 'ssh', 'mmdebstrap');

let world: SshWorld;
let key: string;
let port: string;
let python: string;

beforeAll(async () => {
  const requirements = join(import.meta.dirname, '../../support/ssh-clients.txt');
  python = join(await pythonWith('ssh-clients', requirements), 'bin/python');
  world = await sshWorld();
  key = await world.addKey('laptop');
  port = String(world.server.address.port);
  await world.addInstance('one', { image: DEBIAN });
}, 600_000);
afterAll(() => world.end());

const COMMAND = 'cat; echo "$((6*7)) $SSH_CONNECTION" >&2; exit 3';

/** What each of these clients is to see of the same command. */
function seen(result: { code: number | null; stdout: Buffer; stderr: string }): [number | null, string, boolean] {
  return [result.code, String(result.stdout), /42 127\.0\.0\.1 \d+ 127\.0\.0\.1 \d+/.test(result.stderr)];
}

const EXPECTED = [3, 'through\n', true];

const ASYNCSSH = `
import asyncio, sys, asyncssh
async def main():
    async with asyncssh.connect("127.0.0.1", int(sys.argv[2]), username="one", client_keys=[sys.argv[1]], known_hosts=None, config=None, agent_path=None) as connection:
        result = await connection.run(sys.argv[3], input=sys.stdin.read())
        sys.stdout.write(result.stdout); sys.stderr.write(result.stderr)
        shell = await connection.run("stty size; stty -a", term_type="xterm", term_size=(91, 33), term_modes={asyncssh.PTY_VERASE: 8})
        assert "33 91" in shell.stdout and "erase = ^H" in shell.stdout, shell.stdout
        return result.exit_status
sys.exit(asyncio.run(main()))
`;

onNode('clients other than OpenSSH', () => {
  it('Dropbear, which guesses its first packet of the key exchange', async () => {
    const program = await debProgram('dbclient', 'dropbear-bin', ['libtomcrypt1', 'libtommath1']);
    const libraries = join(dirname(dirname(program)), 'lib');
    const env = {
      ...process.env,
      LD_LIBRARY_PATH: join(libraries, `${process.arch === 'x64' ? 'x86_64' : 'aarch64'}-linux-gnu`),
    };
    const own = join(world.folder, 'dropbear');
    const converted = await run(join(dirname(program), 'dropbearconvert'), ['openssh', 'dropbear', key, own], { env });
    expect(converted.code).toBe(0);
    const client = spawn(program, ['-y', '-y', '-i', own, '-p', port, 'one@127.0.0.1', COMMAND], { env });
    expect(seen(await finished(client, 'through\n'))).toEqual(EXPECTED);
  });

  it('PuTTY', async () => {
    const program = await debProgram('plink', 'putty-tools');
    const own = join(world.folder, 'putty.ppk');
    const made = await run(join(dirname(program), 'puttygen'), [key, '-O', 'private', '-o', own]);
    expect(made.code).toBe(0);
    const { stdout } = await run('ssh-keyscan', ['-p', port, '-t', 'ed25519', '127.0.0.1']);
    const line = join(world.folder, 'host.pub');
    writeFileSync(line, stdout.split(' ').slice(1).join(' '));
    const { stdout: fingerprint } = await run('ssh-keygen', ['-lf', line]);
    const host = ['-hostkey', fingerprint.split(' ')[1] ?? ''];
    const client = spawn(program, ['-batch', '-ssh', '-i', own, '-P', port, ...host, 'one@127.0.0.1', COMMAND]);
    expect(seen(await finished(client, 'through\n'))).toEqual(EXPECTED);
  });

  it('asyncssh, with a terminal whose Backspace is Control-H', async () => {
    const client = spawn(python, ['-c', ASYNCSSH, key, port, COMMAND]);
    const result = await finished(client, 'through\n');
    expect(result.stderr).not.toContain('Traceback');
    expect(seen(result)).toEqual(EXPECTED);
  });
});
