import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Way } from '../../../src/ssh/audit.ts';
import { checkLogin } from '../../../src/ssh/session/check-login.ts';
import { BARE, DEBIAN, NONROOT } from '../../support/ssh-images.ts';
import { sshClient, type SshClient } from '../../support/ssh-client.ts';
import { terminalSession } from '../../support/ssh-terminal.ts';
import { byEachWay, sshWorld, WAYS, type SshWorld } from '../../support/ssh-world.ts';
import { waitFor } from '../../support/wait-for.ts';
import { describeWith } from '../../support/needs.ts';

const onNode = describeWith('real node', 'ssh', 'mmdebstrap');

let world: SshWorld;
let configs: Record<Way, string>;
let config: string;
let client: SshClient;

function use(way: Way): void {
  config = configs[way];
  client = sshClient(config);
}

beforeAll(async () => {
  world = await sshWorld();
  const key = await world.addKey('laptop');
  const { direct, exec } = world.gateways;
  configs = { direct: world.configOf(direct, key), exec: world.configOf(exec, key) };
  await Promise.all([
    world.addInstance('debian', { image: DEBIAN }),
    world.addInstance('bare', { image: BARE }),
    world.addInstance('nonroot', { image: NONROOT, securityContext: { runAsNonRoot: true } }),
    world.addInstance('toolless', { image: DEBIAN, tools: false }),
  ]);
});
afterAll(() => world.end());

const IMAGES = ['debian', 'bare', 'nonroot'];
// busybox asks the terminal where its cursor is.
const PROMPT = /[#$] (?:.\[6n)?$/;

onNode.each(byEachWay(IMAGES))('a session in %s, %s', (instance, way) => {
  beforeEach(() => use(way));

  it('runs a command with its exit status, stdout and stderr', async () => {
    const result = await client.ssh(instance, 'echo out; echo err >&2; exit 7');
    expect(result).toMatchObject({ code: 7, stderr: 'err\n' });
    expect(String(result.stdout)).toBe('out\n');
  });

  it('passes quotes, newlines and bytes of a command as they are', async () => {
    const result = await client.ssh(instance, `printf '%s|' "a b" 'c"d' 'é\n\\n' "$((1+1))"`);
    expect(String(result.stdout)).toBe('a b|c"d|é\n\\n|2|');
  });

  it('gives stdin to the command, with its end', async () => {
    const result = await client.ssh(instance, 'wc -c', { input: Buffer.alloc(300_000) });
    expect(String(result.stdout).trim()).toBe('300000');
  });

  it('runs a shell that reads its commands from a pipe', async () => {
    const result = await client.ssh(instance, '', { flags: ['-T'], input: 'echo from stdin\nexit 3\n' });
    expect(result.code).toBe(3);
    expect(String(result.stdout)).toContain('from stdin');
  });

  it('gives a terminal of the right kind', async () => {
    const result = await client.ssh(instance, 'test -t 0 && test -t 1 && echo "$TERM"; exit 4', { flags: ['-tt'] });
    expect(result.code).toBe(4);
    expect(String(result.stdout).trim()).toBe(process.env['TERM'] ?? 'xterm');
  });

  it('has an interactive shell that follows its window, its keys and its exit status', async () => {
    const terminal = terminalSession(['-F', config, `${instance}@127.0.0.1`]);
    await terminal.type('', PROMPT);
    await terminal.type('stty size; echo "$TERM" $((1+1))\r', /30 100\s+xterm-256color 2\s/);
    await terminal.resize(120, 40);
    await waitFor('the new size', async () => {
      const [, size] = await terminal.type('echo size: $(stty size)\r', /size: (\d+ \d+)\s/);
      return size === '40 120';
    });
    // What says it has the terminal by then, so that Ctrl-C is a signal, and one for it and not for the shell.
    await terminal.type("sh -c 'echo nap $((7*7)); exec sleep 1000'\r", /nap 49\s/);
    await terminal.type('\x03', PROMPT);
    expect(await terminal.end('exit 3\r')).toBe(3);
  });

  it('takes the variables that the client sends', async () => {
    const flags = ['-o', 'SetEnv=LANG=de_DE.UTF-8 LC_TEST=é'];
    const result = await client.ssh(instance, 'echo "$LANG|$LC_TEST"', { flags });
    expect(String(result.stdout)).toBe('de_DE.UTF-8|é\n');
  });

  it('refuses to forward an agent, with a line, and goes on', async () => {
    const socket = `${world.folder}/agent-${instance}-${way}`;
    const agent = spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' });
    await waitFor('the agent', () => existsSync(socket));
    const flags = ['-A', '-o', `IdentityAgent=${socket}`, '-o', 'LogLevel=DEBUG1'];
    const result = await client.ssh(instance, 'echo "[$SSH_AUTH_SOCK]"', { flags });
    agent.kill();
    await once(agent, 'close');
    expect(result.code).toBe(0);
    expect(result.stderr).toContain('Requesting authentication agent forwarding');
    expect(result.stderr).toContain('berth: agent forwarding (-A) is not offered');
    expect(String(result.stdout)).toBe('[]\n');
  });

  it('shares one connection with others', async () => {
    const flags = ['-S', `${world.folder}/control-${instance}-${way}`];
    const master = client.start(instance, '', ['-M', '-N', ...flags]);
    const check = (): Promise<{ code: number | null }> =>
      client.ssh(instance, '', { flags: [...flags, '-O', 'check'] });
    await waitFor('the master', async () => (await check()).code === 0);
    const logins = (): number => world.records.filter(({ event }) => event === 'login').length;
    const before = logins();
    const results = await Promise.all(
      Array.from({ length: 8 }, (_, n) => client.ssh(instance, `echo ${n}; exit ${n}`, { flags })),
    );
    expect(results.map(({ code }) => code)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(logins()).toBe(before);
    master.kill();
  });

  it('has a home that can be written, and a name', async () => {
    const result = await client.ssh(instance, 'cd && touch .probe && rm .probe && echo "$USER:$SHELL:$HOME"');
    expect(result.code).toBe(0);
    expect(String(result.stdout).trim()).toMatch(/^[^:]+:\/[^:]+:\/[^:]+$/);
  });

  it('is found ready by the check of a login', async () => {
    const target = world.directory.find({ instance, namespace: world.namespace })?.target;
    if (target === undefined) throw new Error('no target');
    await expect(checkLogin(world.connection, target)).resolves.toBe(true);
  });
});

onNode.each(WAYS)('a session, %s,', (way) => {
  beforeEach(() => use(way));

  it('has the environment of the container', async () => {
    const result = await client.ssh('debian', 'echo "$CUDA_VERSION|$NVIDIA_VISIBLE_DEVICES|$PATH"');
    expect(String(result.stdout)).toMatch(/^12\.4\|all\|\/usr\/local\/cuda\/bin:/);
  });

  it.each([
    [100_000, 0, /^100000\n$/, /^$/],
    [200_000, 1, /^$/, /^berth: the command has \d+ bytes, and Linux takes at most 131071\. Put it into a file/],
    [300_000, 255, /^$/, /^Received disconnect from .*: berth: a message .* has more than 262144 bytes\. Put a long/],
  ])('takes a command of %d bytes from OpenSSH, or says why not', async (bytes, code, stdout, stderr) => {
    const word = 'x'.repeat(bytes / 5);
    const args = ['-n', 'debian@127.0.0.1', "printf %s '", word, word, word, word, `${word}' | tr -d ' ' | wc -c`];
    const result = await client.run('ssh', args);
    expect([result.code, String(result.stdout), result.stderr]).toEqual([
      code,
      expect.stringMatching(stdout),
      expect.stringMatching(stderr),
    ]);
  });

  it('takes a long variable from OpenSSH', async () => {
    const flags = ['-o', `SetEnv=LC_LONG=${'é'.repeat(50_000)}`];
    const result = await client.ssh('debian', 'printf %s "$LC_LONG" | wc -c', { flags });
    expect([String(result.stdout), result.stderr]).toEqual(['100000\n', '']);
  });

  it('works without the tools volume when the image has a shell', async () => {
    const result = await client.ssh('toolless', 'cat; exit 5', { input: 'through' });
    expect(result.code).toBe(5);
    expect(String(result.stdout)).toBe('through');
  });

  it('prefers the shell of the image and falls back to that of the tools', async () => {
    const shells = await Promise.all(['debian', 'bare'].map((name) => client.ssh(name, 'echo $SHELL')));
    expect(shells.map(({ stdout }) => String(stdout).trim())).toEqual(['/bin/bash', '/.berth/bin/sh']);
  });

  it('reports the death of a command by a signal as a shell does', async () => {
    expect((await client.ssh('debian', 'kill -9 $$')).code).toBe(137);
  });

  it('survives a megabyte on both outputs', async () => {
    const result = await client.ssh('debian', 'head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2');
    expect([result.stdout.length, result.stderr.length]).toEqual([1_000_000, 1_000_000]);
  });

  it('keeps status and output of a command that ends before its input', async () => {
    for (const instance of ['debian', 'bare', 'toolless']) {
      const result = await client.ssh(instance, 'head -c 3; exit 6', { input: Buffer.alloc(32 * 1024 * 1024, 'x') });
      expect(result).toMatchObject({ code: 6, stderr: '' });
      expect(String(result.stdout)).toBe('xxx');
    }
  });

  it.each(['debian', 'bare', 'toolless'])(
    'ends what writes to it when the client goes, and leaves servers, as sshd does, in %s',
    async (instance) => {
      // Each says who it is once it is as it stays. As nohup does, which busybox of Debian lacks.
      const stubborn = (begin: string): string => `sh -c 'trap : HUP TERM; ${begin}; while :; do sleep 0.1; done'`;
      const writer = stubborn('echo writes $$');
      const server = stubborn('exec 3>&1 >/dev/null 2>&1; echo serves $$ >&3; exec 3>&-');
      const deaf = `sh -c 'trap "" HUP; echo stays $$; exec sleep 4712'`;
      const child = client.start(instance, `${writer} & ${server} & ${deaf} & wait`);
      let output = '';
      child.stdout.on('data', (part: Buffer) => (output += part.toString()));
      const pid = (name: string): string => new RegExp(`^${name} (\\d+)\n`, 'm').exec(output)?.[1] ?? '';
      await waitFor('all', () => ['writes', 'serves', 'stays'].every((name) => pid(name) !== ''));
      // Of a process that has ended and waits for its parent it is empty.
      const running = async (name: string): Promise<boolean> =>
        (await client.ssh(instance, `grep -q . /proc/${pid(name)}/cmdline`)).code === 0;
      child.kill('SIGKILL');
      await waitFor('the end of the first', async () => !(await running('writes')));
      expect([await running('serves'), await running('stays')]).toEqual([true, true]);
      expect((await client.ssh(instance, `kill -9 ${pid('serves')} ${pid('stays')}`)).code).toBe(0);
    },
  );

  it('hangs a terminal up with its client', async () => {
    const child = client.start('debian', 'sleep 4713', ['-tt']);
    const running = async (): Promise<boolean> =>
      (await client.ssh('debian', 'grep -sl 471[3] /proc/[0-9]*/cmdline')).code === 0;
    await waitFor('the command', running);
    child.kill('SIGKILL');
    await waitFor('its end', async () => !(await running()));
  });

  it('leaves records of who and how much, and nothing of what', async () => {
    world.records.length = 0;
    await client.ssh('debian', 'cat; echo secret-word', { input: '12345' });
    const record = await waitFor('the record', () =>
      world.records.findLast((each) => each.event === 'session' && each.bytesIn === 5),
    );
    expect(record).toMatchObject({ kind: 'command', bytesOut: 17, status: 0, login: { instance: 'debian' }, way });
    expect(JSON.stringify(world.records)).not.toContain('secret-word');
  });
});
