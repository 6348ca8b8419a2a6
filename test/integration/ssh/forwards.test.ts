import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Way } from '../../../src/ssh/audit.ts';
import { BARE, DEBIAN, NONROOT } from '../../support/ssh-images.ts';
import { finished, sshClient, type SshClient } from '../../support/ssh-client.ts';
import { byEachWay, sshWorld, WAYS, type SshWorld } from '../../support/ssh-world.ts';
import { waitFor } from '../../support/wait-for.ts';
import { describeWith } from '../../support/needs.ts';

const onNode = describeWith('real node', 'ssh', 'mmdebstrap');

let world: SshWorld;
let clients: Record<Way, SshClient>;
let client: SshClient;

const IMAGES = ['debian', 'bare', 'nonroot'];
const HTTP = 7001;
const SUM = 7002;
const GREETER = 7003;
/** Each server of an editor has a port of its own: that of an earlier connection may still be there, and then end. */
let editorPort = 7010;

beforeAll(async () => {
  world = await sshWorld();
  const key = await world.addKey('laptop');
  const { direct, exec } = world.gateways;
  clients = { direct: sshClient(world.configOf(direct, key)), exec: sshClient(world.configOf(exec, key)) };
  client = clients.exec;
  await Promise.all([
    world.addInstance('bare', { image: BARE }),
    world.addInstance('debian', { image: DEBIAN }),
    world.addInstance('nonroot', { image: NONROOT, securityContext: { runAsNonRoot: true } }),
    world.addInstance('toolless', { image: DEBIAN, tools: false }),
  ]);
  const serve = [
    'mkdir -p /tmp/www; echo hello >/tmp/www/index.html',
    `setsid httpd -p 127.0.0.1:${HTTP} -h /tmp/www`,
    // Answers only after the end of its input: works through a half-closed connection alone.
    `setsid nc -ll -p ${SUM} -e /.berth/applets/md5sum </dev/null >/dev/null 2>&1 &`,
    // Speaks first and closes, without reading.
    `setsid nc -ll -p ${GREETER} -e /.berth/applets/echo greetings </dev/null >/dev/null 2>&1 &`,
  ];
  for (const instance of IMAGES) expect(await client.ssh(instance, serve.join('\n'))).toMatchObject({ code: 0 });
});
afterAll(() => world.end());

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function dial(port: number): Promise<Socket> {
  return await waitFor('the forward', async () => {
    const socket = connect(port, '127.0.0.1');
    // A client that is killed resets what it forwards.
    socket.on('error', () => undefined);
    return await once(socket, 'connect').then(
      () => socket,
      () => undefined,
    );
  });
}

/** A forward of one remote port, and the end of its client. */
async function forward(
  instance: string,
  target: string,
): Promise<{ port: number; stop: () => void; errors: () => string }> {
  const port = await freePort();
  const child = client.start(instance, '', ['-N', '-o', 'LogLevel=INFO', '-L', `${port}:${target}`]);
  let errors = '';
  child.stderr.on('data', (part) => (errors += String(part)));
  return { port, stop: () => child.kill(), errors: () => errors };
}

onNode.each(byEachWay(IMAGES))('to %s, %s', (instance, way) => {
  beforeEach(() => {
    client = clients[way];
  });

  it('-N -L reaches a server on the loopback of the instance', async () => {
    const { port, stop } = await forward(instance, `localhost:${HTTP}`);
    (await dial(port)).destroy();
    const bodies = await Promise.all(
      Array.from({ length: 6 }, async () => await (await fetch(`http://127.0.0.1:${port}/`)).text()),
    );
    expect(new Set(bodies)).toEqual(new Set(['hello\n']));
    stop();
  });

  it('-L carries the end of one direction and leaves the other open', async () => {
    const { port, stop } = await forward(instance, `127.0.0.1:${SUM}`);
    const socket = await dial(port);
    socket.end('abc');
    expect(await text(socket)).toMatch(/^900150983cd24fb0d6963f7d28e17f72/);
    stop();
  });

  it.each<[string, string]>([
    ['VS Code Remote', 'sh'],
    // The image without bash has it in no sequence.
    ...(instance === 'bare' ? [] : [['Cursor', 'bash --login -c bash'] satisfies [string, string]]),
  ])('-D reaches by name whatever the instance reaches, in the sequence of %s', async (_editor, shell) => {
    const port = await freePort();
    editorPort += 1;
    // One connection with a SOCKS port, a script on the stdin of a shell that puts a server in place and prints its port,
    // then requests to it through SOCKS.
    const child = client.start(instance, shell, ['-T', '-D', String(port), '-o', 'ConnectTimeout=15']);
    let output = '';
    child.stdout.on('data', (part) => (output += String(part)));
    child.stdin.write(`
      set -e; DATA="$HOME/.vscode-server"; mkdir -p "$DATA/bin"; uname -rsv; uname -m
      printf '#!/.berth/bin/sh\\nmkdir -p /tmp/code; echo code-server >/tmp/code/index.html; exec httpd -f -p 127.0.0.1:${editorPort} -h /tmp/code\\n' >"$DATA/bin/server"
      chmod +x "$DATA/bin/server"; $(command -v nohup) "$DATA/bin/server" >"$DATA/log" 2>&1 & echo "listeningOn==${editorPort}=="
    `);
    await waitFor('the port', () => output.includes(`listeningOn==${editorPort}==`));
    const answer = await waitFor('the server', async () => {
      const socket = await dial(port);
      const reply = async (): Promise<Buffer | undefined> => {
        const [bytes] = (await Promise.race([once(socket, 'data'), once(socket, 'close')])) as [Buffer | boolean];
        return typeof bytes === 'boolean' ? undefined : bytes;
      };
      // SOCKS5, no authentication, CONNECT to the name localhost.
      socket.write(Buffer.from([5, 1, 0]));
      if ((await reply()) === undefined) return undefined;
      const target = Buffer.from([editorPort >> 8, editorPort & 0xff]);
      socket.write(Buffer.concat([Buffer.from([5, 1, 0, 3, 9]), Buffer.from('localhost'), target]));
      if ((await reply())?.[1] !== 0) return undefined;
      socket.write('GET /index.html HTTP/1.0\r\n\r\n');
      return await text(socket);
    });
    expect(answer).toContain('code-server');
    child.stdin.end();
    child.kill();
  });
});

onNode.each(WAYS)('-L, %s', (way) => {
  beforeEach(() => {
    client = clients[way];
  });

  it('passes on the end that the server makes', async () => {
    const { port, stop } = await forward('bare', `127.0.0.1:${GREETER}`);
    const socket = await dial(port);
    expect(await text(socket)).toBe('greetings\n');
    socket.end();
    stop();
  });

  it('closes at once when nobody listens there, says so, and goes on', async () => {
    const { port, stop, errors } = await forward('bare', 'localhost:9');
    const socket = await dial(port);
    await once(socket, 'close');
    await waitFor('the refusal', () =>
      /open failed: connect failed: berth: localhost:9 cannot be reached .*connection refused/.test(errors()),
    );
    stop();
  });

  it('reaches a socket of the instance by its path, and none of another instance or of the node', async () => {
    const listen = `use IO::Socket::UNIX; unlink "/tmp/own.sock"; $s = IO::Socket::UNIX->new(Listen => 5, Local => "/tmp/own.sock"); while ($c = $s->accept) { print $c "own"; close $c }`;
    const server = client.start('debian', `perl -e '${listen}'`);
    const own = await forward('debian', '/tmp/own.sock');
    await waitFor('the socket', async () => (await text(await dial(own.port)).catch(() => '')) === 'own');
    own.stop();
    for (const path of [
      '/tmp/own.sock',
      '/run/containerd/containerd.sock',
      '/proc/1/root/run/containerd/containerd.sock',
      '/.berth/../../run/containerd/containerd.sock',
    ]) {
      const other = await forward('bare', path);
      await once(await dial(other.port), 'close');
      await waitFor('the refusal', () =>
        /open failed: connect failed: berth: \/.* cannot be reached from the instance: /.test(other.errors()),
      );
      other.stop();
    }
    server.kill();
  });

  it('leaves no process behind', async () => {
    const { port, stop } = await forward('bare', `localhost:${HTTP}`);
    const socket = await dial(port);
    socket.write('GET');
    // By exec: the other way has a process of the same name.
    const program = way === 'exec' ? 'rela[y]' : 'direc[t]';
    const runs = async (): Promise<boolean> =>
      (await clients.exec.ssh('bare', `grep -sl bin/${program} /proc/[0-9]*/cmdline`)).code === 0;
    await waitFor('the process', runs);
    stop();
    await waitFor('its end', async () => !(await runs()));
  });

  it('reaches the loopback of an instance without tools', async () => {
    // Perl is in every Debian image and can listen.
    const script = `use IO::Socket::INET; $s = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1", LocalPort => ${HTTP}, ReuseAddr => 1); while ($c = $s->accept) { $l = <$c>; print $c "got $l"; close $c }`;
    const server = client.start('toolless', `perl -e '${script}'`);
    const { port, stop } = await forward('toolless', `localhost:${HTTP}`);
    const answer = await waitFor('an answer', async () => {
      const socket = await dial(port);
      socket.write('line\n');
      return (await text(socket).catch(() => '')) || undefined;
    });
    expect(answer).toBe('got line\n');
    stop();
    server.kill();
  });
});

onNode.each(WAYS)('-W, %s', (way) => {
  beforeEach(() => {
    client = clients[way];
  });

  it('-W joins stdin and stdout to a port', async () => {
    const result = await finished(client.start('bare', '', ['-W', `localhost:${SUM}`]), 'abc');
    expect(String(result.stdout)).toMatch(/^900150983cd24fb0d6963f7d28e17f72/);
  });
});
