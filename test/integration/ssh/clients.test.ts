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

/** Programs of Python: each runs the command, and asks besides for what its library does otherwise. */
const PYTHON: Readonly<Record<string, string>> = {
  'asyncssh, with a terminal whose Backspace is Control-H': `
import asyncio, sys, asyncssh
async def main():
    async with asyncssh.connect("127.0.0.1", int(sys.argv[2]), username="one", client_keys=[sys.argv[1]], known_hosts=None, config=None, agent_path=None) as connection:
        result = await connection.run(sys.argv[3], input=sys.stdin.read())
        sys.stdout.write(result.stdout); sys.stderr.write(result.stderr)
        shell = await connection.run("stty size; stty -a", term_type="xterm", term_size=(91, 33), term_modes={asyncssh.PTY_VERASE: 8})
        assert "33 91" in shell.stdout and "erase = ^H" in shell.stdout, shell.stdout
        return result.exit_status
sys.exit(asyncio.run(main()))
`,
  'paramiko, with files, a terminal without modes and a forward': `
import sys, paramiko
client = paramiko.SSHClient()
client.set_missing_host_key_policy(paramiko.AutoAddPolicy())
client.connect("127.0.0.1", port=int(sys.argv[2]), username="one", key_filename=sys.argv[1], allow_agent=False, look_for_keys=False)
stdin, stdout, stderr = client.exec_command(sys.argv[3], environment={"LC_A": "a"})
stdin.write(sys.stdin.read())
stdin.channel.shutdown_write()
sys.stdout.write(stdout.read().decode())
sys.stderr.write(stderr.read().decode())
status = stdout.channel.recv_exit_status()
shell = client.invoke_shell(term="xterm", width=91, height=33)
shell.resize_pty(width=92, height=34)
shell.send(b"stty size; exit 4\\n")
screen = shell.makefile("rb").read()
assert b"34 92" in screen and shell.recv_exit_status() == 4, screen
with client.open_sftp() as files:
    with files.open("/tmp/paramiko", "w") as file:
        file.write("word" * 100_000)
    assert files.stat("/tmp/paramiko").st_size == 400_000
try:
    client.get_transport().open_channel("direct-tcpip", ("127.0.0.1", 9), ("127.0.0.1", 0))
    assert False
except paramiko.ChannelException as refused:
    assert refused.code == 2, refused
client.close()
sys.exit(status)
`,
  // What JetBrains Gateway does over one connection: asks what the machine is, uploads a server by SFTP, starts it apart from the
  // session, reads where it listens, and forwards that port, while sessions come and go.
  'paramiko, in the sequence of JetBrains Gateway': `
import sys, time, paramiko
client = paramiko.SSHClient()
client.set_missing_host_key_policy(paramiko.AutoAddPolicy())
client.connect("127.0.0.1", port=int(sys.argv[2]), username="one", key_filename=sys.argv[1], allow_agent=False, look_for_keys=False)
client.get_transport().set_keepalive(1)
def run(command, given=b""):
    stdin, stdout, stderr = client.exec_command(command)
    stdin.write(given)
    stdin.channel.shutdown_write()
    out, err = stdout.read(), stderr.read().decode()
    return stdout.channel.recv_exit_status(), out.decode(), err
assert run("uname -sm; echo $SHELL; getconf LONG_BIT || true")[1].startswith("Linux "), "uname"
home = run("echo $HOME")[1].strip()
folder = home + "/.cache/JetBrains/RemoteDev/dist"
assert run("mkdir -p '" + folder + "'")[0] == 0
server = b"#!/bin/sh\\necho $$ >pid\\nexec /.berth/bin/busybox nc -ll -p 5990 -e /.berth/applets/cat\\n"
with client.open_sftp() as files:
    with files.open(folder + "/remote-dev-server.sh.part", "wb") as file:
        file.write(server + b"#" * 300_000)
    files.posix_rename(folder + "/remote-dev-server.sh.part", folder + "/remote-dev-server.sh")
    files.chmod(folder + "/remote-dev-server.sh", 0o755)
    assert files.stat(folder + "/remote-dev-server.sh").st_size == len(server) + 300_000
started = "cd '" + folder + "' && (nohup setsid ./remote-dev-server.sh >log 2>&1 </dev/null &) && until [ -s pid ]; do sleep 0.1; done; cat pid"
status, pid, _ = run(started)
assert status == 0, pid
def forward():
    for _ in range(100):
        try:
            return client.get_transport().open_channel("direct-tcpip", ("127.0.0.1", 5990), ("127.0.0.1", 0))
        except paramiko.ChannelException:
            time.sleep(0.1)
channels = [forward() for _ in range(3)]
for index, channel in enumerate(channels):
    channel.sendall(b"%d" % index * 100_000)
for index, channel in enumerate(channels):
    got = b""
    while len(got) < 100_000:
        got += channel.recv(65536)
    assert got == b"%d" % index * 100_000
    channel.close()
assert run("kill -0 " + pid)[0] == 0, "the server did not outlive its session"
run("kill " + pid)
status, out, err = run(sys.argv[3], sys.stdin.read().encode())
sys.stdout.write(out)
sys.stderr.write(err)
client.close()
sys.exit(status)
`,
  'libssh, with a terminal and a variable': `
import sys
from ssh import options
from ssh.key import import_privkey_file
from ssh.session import Session
session = Session()
session.options_set(options.HOST, "127.0.0.1")
session.options_set(options.USER, "one")
session.options_set_port(int(sys.argv[2]))
session.connect()
session.userauth_publickey(import_privkey_file(sys.argv[1]))
def run(command, given=b"", terminal=False):
    channel = session.channel_new()
    channel.open_session()
    if terminal:
        channel.request_pty_size("xterm", 91, 33)
        channel.request_env("LC_A", "a")
    channel.request_exec(command)
    channel.write(given)
    channel.send_eof()
    outputs = []
    for is_stderr in (False, True):
        output = b""
        while (part := channel.read(is_stderr=is_stderr))[0] > 0:
            output += part[1]
        outputs.append(output.decode())
    channel.close()
    return channel.get_exit_status(), *outputs
screen = run('stty size; echo "$LC_A"', terminal=True)[1]
assert screen.split() == ["33", "91", "a"], screen
status, out, err = run(sys.argv[3], sys.stdin.read().encode())
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(status)
`,
};

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

  it.each(Object.entries(PYTHON))('%s', async (_name, program) => {
    const result = await finished(spawn(python, ['-c', program, key, port, COMMAND]), 'through\n');
    expect(result.stderr).not.toContain('Traceback');
    expect(seen(result)).toEqual(EXPECTED);
  });
});
