import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { FIRST_WINDOW } from '../../../src/direct/credited-output.ts';
import type { DirectLink } from '../../../src/direct/direct-link.ts';
import { cacheFolder } from '../../../tools/lib/paths.ts';
import { buildPrograms } from '../../../tools/lib/images/tools-image.ts';
import { firstLine, startHelper, type Helper } from '../../support/direct-helper.ts';
import { describeWith } from '../../support/needs.ts';
import { waitFor } from '../../support/wait-for.ts';

// Go is where the programs for the real node are built.
const withGo = describeWith('real node');
const MIB = 1024 * 1024;
const SHELL = ['/bin/sh', '-c', 'IFS= read -r _b <&3; exec 3<&-; eval "$(printf %b "$_b")"'];

let programs: string;
let helper: Helper;

beforeAll(async () => {
  programs = await buildPrograms(cacheFolder(process.env));
}, 300_000);
beforeEach(async () => {
  helper = await startHelper(programs);
});
afterEach(() => {
  helper.child.kill('SIGKILL');
});

function program(link: DirectLink, script: string, terminal?: { columns: number; rows: number }) {
  return link.open({ argv: SHELL, script: `${script}\n`, terminal });
}

/** A process that has ended, or waits for its parent to look. */
function isGone(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z ');
  } catch {
    // Also where it goes while it is read.
    return true;
  }
}

withGo('the helper in an instance', () => {
  it('carries many programs at once, each with its input, outputs and status', async () => {
    const link = await helper.link();
    const results = await Promise.all(
      Array.from({ length: 20 }, async (_, n) => {
        const channel = program(link, `wc -c; echo err ${n} >&2; exit ${n}`);
        channel.stdin.end(Buffer.alloc(n * 100_000));
        const outputs = await Promise.all([text(channel.stdout), text(channel.stderr)]);
        return { outputs: outputs.map((output) => output.trim()), exit: await channel.exit };
      }),
    );
    for (const [n, { outputs, exit }] of results.entries()) {
      expect(outputs).toEqual([String(n * 100_000), `err ${n}`]);
      expect(exit).toEqual({ kind: 'exited', code: n });
    }
    link.close();
    expect(await helper.exit).toBe(0);
  });

  it('passes bytes both ways as they are', async () => {
    const link = await helper.link();
    const channel = program(link, 'cat');
    const sent = randomBytes(8 * MIB);
    channel.stdin.end(sent);
    const parts = (await channel.stdout.toArray()) as Buffer[];
    expect(Buffer.concat(parts).equals(sent)).toBe(true);
    link.close();
  });

  it('gives a terminal with its size', async () => {
    const link = await helper.link();
    const channel = program(link, 'stty size; read x; stty size; exit 3', { columns: 90, rows: 31 });
    let output = '';
    channel.stdout.on('data', (part: Buffer) => (output += part.toString()));
    await waitFor('the size', () => output.includes('31 90'));
    channel.resize(120, 40);
    channel.stdin.write('go\n');
    expect(await channel.exit).toEqual({ kind: 'exited', code: 3 });
    expect(output).toContain('40 120');
    link.close();
  });

  it('takes a size from the moment on that it says a program is open', async () => {
    const link = await helper.link();
    const seen = await Promise.all(
      Array.from({ length: 100 }, async () => {
        const channel = program(link, 'read x; stty size', { columns: 90, rows: 31 });
        await channel.opened;
        channel.resize(120, 40);
        channel.stdin.write('go\n');
        return await text(channel.stdout);
      }),
    );
    expect(new Set(seen)).toEqual(new Set(['go\r\n40 120\r\n']));
    link.close();
  });

  it('takes the rest of an input that nobody reads, and says so', async () => {
    const link = await helper.link();
    const channel = program(link, 'head -c 3; exec <&-; echo; sleep 0.2; exit 6');
    channel.stdout.resume();
    for (let count = 0; count < 64; count += 1) channel.stdin.write(Buffer.alloc(64 * 1024));
    await channel.inputOver;
    expect(await channel.exit).toEqual({ kind: 'exited', code: 6 });
    link.close();
  });

  it('does not read ahead of a reader that stops', async () => {
    const link = await helper.link();
    const endless = program(link, 'cat /dev/zero');
    await endless.opened;
    await waitFor('the window to fill', () => endless.stdout.readableLength >= FIRST_WINDOW);
    // The others go on.
    const other = program(link, 'echo fine');
    expect(await text(other.stdout)).toBe('fine\n');
    expect(endless.stdout.readableLength).toBe(FIRST_WINDOW);
    link.close();
  });

  it('reports a program that is not there, and a death by a signal', async () => {
    const link = await helper.link();
    await expect(link.open({ argv: ['/nowhere/sh'], script: '' }).opened).rejects.toThrow('no such file');
    expect(await program(link, 'kill -9 $$').exit).toEqual({ kind: 'exited', code: 137 });
    const waiting = program(link, "trap 'exit 9' USR1; echo up; while :; do sleep 0.05; done");
    await once(waiting.stdout, 'data');
    waiting.signal(10);
    expect(await waiting.exit).toEqual({ kind: 'exited', code: 9 });
    link.close();
  });

  it('joins a channel to a port, with the end of each half', async () => {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      let all = '';
      socket.on('data', (part: Buffer) => (all += part.toString())).on('end', () => socket.end(`got ${all}`));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const link = await helper.link();
    const { port } = server.address() as AddressInfo;
    const channel = link.open({ network: 'tcp', address: `127.0.0.1:${port}` });
    channel.stdin.end('abc');
    expect(await text(channel.stdout)).toBe('got abc');
    expect(await channel.outputEnd).toBe(7);
    const closed = link.open({ network: 'tcp', address: '127.0.0.1:9' });
    await expect(closed.opened).rejects.toThrow('connection refused');
    link.close();
    server.close();
  });

  const TERMINAL = { columns: 80, rows: 24 };

  // The gateway ends what a killed helper leaves without a terminal: sessions.test.ts.
  it.each([
    ['the connection ends', undefined, (link: DirectLink) => link.close()],
    ['the connection of a terminal ends', TERMINAL, (link: DirectLink) => link.close()],
    ['the helper of a terminal is killed', TERMINAL, () => helper.child.kill('SIGKILL')],
  ])('programs end when %s', async (_when, terminal, act) => {
    const link = await helper.link();
    const channel = program(link, 'echo up; exec sleep 4000', terminal);
    const pid = await channel.opened;
    await once(channel.stdout, 'data');
    act(link);
    await waitFor('the end of the program', () => isGone(pid));
    expect(await channel.exit).toMatchObject({ kind: 'lost' });
  });

  it('ends what a session left behind, and not what was told to stay', async () => {
    const link = await helper.link();
    const channel = program(
      link,
      'sh -c "echo mortal $$; sleep 4000; true" & nohup sleep 4001 >/dev/null 2>&1 & echo immortal $!; wait',
    );
    let output = '';
    channel.stdout.on('data', (part: Buffer) => (output += part.toString()));
    await waitFor('both', () => output.split('\n').length === 3);
    const processOf = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(output)?.[1]);
    const [mortal, immortal] = [processOf('mortal'), processOf('immortal')];
    // The shell names it before nohup has told it to stay, and has become what it runs.
    await waitFor('nohup', () => readFileSync(`/proc/${immortal}/comm`, 'utf8') === 'sleep\n');
    channel.close();
    await waitFor('the end of the first', () => isGone(mortal));
    link.close();
    expect(await helper.exit).toBe(0);
    expect(isGone(immortal)).toBe(false);
    process.kill(immortal, 'SIGKILL');
  });

  it('leaves a program that writes elsewhere, though HUP would end it, and ends it with a terminal', async () => {
    const link = await helper.link();
    const [free, bound] = [undefined, TERMINAL].map((terminal) =>
      program(link, 'exec sleep 4002 >/dev/null 2>&1', terminal),
    );
    const pids = await Promise.all([free?.opened, bound?.opened]);
    for (const pid of pids) await waitFor('it', () => readFileSync(`/proc/${pid}/comm`, 'utf8') === 'sleep\n');
    link.close();
    expect(await helper.exit).toBe(0);
    expect(pids.map((pid) => isGone(pid ?? 0))).toEqual([false, true]);
    process.kill(pids[0] ?? 0, 'SIGKILL');
  });

  it('outlives the exec stream that started it', async () => {
    const link = await helper.link();
    helper.child.stdin.destroy();
    helper.child.stdout.destroy();
    const channel = program(link, 'echo alive');
    expect(await text(channel.stdout)).toBe('alive\n');
    link.close();
    expect(await helper.exit).toBe(0);
  });
});

withGo('strangers at the port of a helper', () => {
  it('get nothing without the token, and do not keep the gateway out', async () => {
    const { socket: wrong } = await helper.dial(randomBytes(32));
    await once(wrong, 'close');
    const silent = connect(helper.port, '127.0.0.1');
    await once(silent, 'connect');
    const curious = await helper.stranger();
    curious.write(Buffer.concat([helper.token.subarray(0, 31), Buffer.of((helper.token[31] ?? 0) ^ 1)]));
    curious.resume();
    await once(curious, 'close');
    const link = await helper.link();
    expect(await text(program(link, 'echo mine').stdout)).toBe('mine\n');
    // Nobody else may connect once the gateway has: not even with the token.
    await expect(helper.dial(helper.token)).rejects.toThrow('ECONNREFUSED');
    silent.destroy();
    link.close();
  });

  it('who say nothing, or speak slowly, are cut after seconds', async () => {
    const sockets = [connect(helper.port, '127.0.0.1'), connect(helper.port, '127.0.0.1')];
    const drip = setInterval(() => sockets[0]?.write(Buffer.of(0x16)), 100);
    const began = performance.now();
    const cut = sockets.map(
      (socket) =>
        new Promise((resolve) =>
          socket
            .on('error', () => undefined)
            .resume()
            .once('close', resolve),
        ),
    );
    await Promise.all(cut);
    clearInterval(drip);
    // The listener itself would last for ten.
    expect(performance.now() - began).toBeLessThan(9_000);
  });

  it('who send too much before the token are cut', async () => {
    const socket = connect(helper.port, '127.0.0.1');
    socket.on('error', () => undefined).resume();
    // The head of a TLS record of 16 KiB, again and again.
    const record = Buffer.concat([Buffer.of(0x16, 3, 1, 0x3f, 0xff), Buffer.alloc(0x3fff, 1)]);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    for (let count = 0; count < 8; count += 1) socket.write(record);
    await closed;
    const link = await helper.link();
    expect(link.isOpen).toBe(true);
    link.close();
  });

  it('who come in a crowd close the listener, and the helper ends', async () => {
    const crowd = Array.from({ length: 16 }, () => connect(helper.port, '127.0.0.1').on('error', () => undefined));
    expect(await helper.exit).toBe(1);
    for (const socket of crowd) socket.destroy();
  });

  it('find nobody when no gateway comes, or when it gave up', async () => {
    helper.child.stdin.end();
    expect(await helper.exit).toBe(1);
    const alone = await startHelper(programs);
    expect(await alone.exit).toBe(1);
  });
});

withGo('a helper that is started wrongly', () => {
  it.each([
    ['another version', '{"version":2,"address":"127.0.0.1","token":"00"}', 'version 2'],
    ['no address', '{"version":1,"address":"localhost","token":"00"}', 'lacks an address or a token'],
    ['another protocol', 'GET / HTTP/1.1', 'no JSON'],
    ['an endless line', 'x'.repeat(5000), 'no line'],
  ])('by %s says why and ends', async (_what, line, reason) => {
    const child = spawn(`${programs}/direct`);
    child.stdin.on('error', () => undefined);
    child.stdin.end(`${line}\n`);
    const exited = once(child, 'exit');
    expect(JSON.parse(await firstLine(child.stdout))).toEqual({ error: expect.stringContaining(reason) as string });
    expect(await exited).toEqual([1, null]);
  });
});
