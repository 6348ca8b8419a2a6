import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import { DEFAULT_CEILINGS } from '../../../src/resources/tenants/ceilings.ts';
import { frame } from '../../support/channel-server.ts';
import { type DirectShell, directShell } from '../../support/direct-shell.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { caller, shell, terminalWorld, type TerminalWorld, VIEW } from '../../support/terminal-world.ts';
import { waitFor } from '../../support/wait-for.ts';

const clock = fakeClock();
let world: TerminalWorld;

beforeEach(async () => {
  world = await terminalWorld({ clock });
});
afterEach(() => world[Symbol.asyncDispose]());

/** Audit records of one kind. */
const told = (event: string) => world.records.filter((record) => record.event === event);

describe('a terminal', () => {
  it('is a shell with a size, until the shell ends', async () => {
    const client = world.open('token', '?columns=100&rows=30');
    await client.shows('$ ');
    expect(world.kubelet.paths[0]).toMatch(/^\/api\/v1\/namespaces\/team\/pods\/p\/exec\?.*tty=true/);
    await client.shows('size {"Width":100,"Height":30}');
    client.send(0, 'uname\r');
    await client.shows('uname');
    client.send(4, '{"Width":120,"Height":40}');
    await client.shows('size {"Width":120,"Height":40}');
    client.send(0, 'exit\r');
    await waitFor('the status', () => client.status);
    expect(client.status?.status).toBe('Success');
    await waitFor('the end', () => client.closed);
    expect(told('terminal')).toMatchObject([{ visitor: { instance: 'i-one', keyId: 'key-1' } }]);
    expect(told('terminal-end')).toMatchObject([{ status: 0, reason: 'the shell ended', bytesIn: 11 }]);
  });

  it('tells what went wrong when the pod ends', async () => {
    world.kubelet.onStream = (stream) => {
      shell(stream);
      stream.on('message', (data: Buffer) => data.includes('die') && stream.terminate());
    };
    const client = world.open('token');
    await client.shows('$ ');
    client.send(0, 'die');
    await waitFor('the status', () => client.status);
    expect(client.status?.message).toContain('the connection to the instance was lost');
  });

  it('ignores sizes that no screen has, and frames of no channel', async () => {
    const client = world.open('token');
    await client.shows('$ ');
    for (const size of ['{"Width":0,"Height":5}', '{"Width":1e9,"Height":5}', 'x', '{}']) client.send(4, size);
    client.send(77, 'x');
    client.send(6, '-1');
    client.send(0, 'still here');
    await client.shows('still here');
    expect(client.output.match(/size/g)).toHaveLength(1);
  });

  it('waits for a client that does not paint what it takes', async () => {
    const MIB = 1024 * 1024;
    world.kubelet.onStream = (stream) => {
      shell(stream);
      stream.on('message', (data: Buffer) => {
        if (data.includes('flood')) for (let at = 0; at < 64; at += 1) stream.send(frame(1, Buffer.alloc(MIB / 8)));
      });
    };
    const client = world.open('token');
    await client.shows('$ ');
    client.send(6, '0');
    client.send(0, 'flood');
    await waitFor('the first bytes', () => client.bytes > MIB / 4);
    let before = -1;
    await waitFor('a pause', async () => {
      await new Promise((resolve) => setTimeout(resolve, 100));
      const isStill = client.bytes === before;
      before = client.bytes;
      return isStill;
    });
    expect(client.bytes).toBeLessThan(MIB);
    await waitFor('all of it', () => {
      client.send(6, String(client.bytes));
      return client.bytes >= 8 * MIB;
    });
  });
});

it('a command has no screen, an output for errors, input that ends, and an exit status', async () => {
  let taken = '';
  world.kubelet.onStream = (stream) => {
    stream.on('message', (data: Buffer) => {
      if (data[0] === 0) taken += data.subarray(1).toString();
      if (data[0] !== 255) return;
      stream.send(frame(1, 'out'));
      stream.send(frame(2, 'err'));
      const causes = [{ reason: 'ExitCode', message: '3' }];
      stream.send(frame(3, JSON.stringify({ status: 'Failure', reason: 'NonZeroExitCode', details: { causes } })));
    });
  };
  const client = world.open('token', `?command=${encodeURIComponent('cat >file')}`);
  const errors: string[] = [];
  client.socket.on('message', (data: Buffer) => data[0] === 2 && errors.push(data.subarray(1).toString()));
  await waitFor('the command', () => world.kubelet.paths.length === 1);
  client.send(0, 'bytes for it');
  await waitFor('the input', () => taken.endsWith('bytes for it'));
  client.send(255, '\u0000');
  await waitFor('the status', () => client.status);
  expect(world.kubelet.paths[0]).not.toContain('tty=true');
  expect(taken).toContain('cat >file');
  expect([client.output, errors.join('')]).toEqual(['out', 'err']);
  expect(client.status).toMatchObject({ status: 'Failure', details: { causes: [{ message: '3' }] } });
});

it('refuses a command that no shell could be given', async () => {
  for (const query of ['?command=', '?command=a%00b']) {
    const client = world.open('token', query);
    expect(await waitFor('the refusal', () => client.refused)).toMatchObject({ status: 400 });
  }
});

describe('by the direct way a terminal', () => {
  const target = { ...VIEW.target, tools: true, address: '127.0.0.1' } as NonNullable<typeof VIEW.target>;
  /** The streams through the API server that are open. */
  let carriers: Set<WebSocket>;
  let pod: DirectShell;

  beforeEach(async () => {
    pod = await directShell();
    carriers = new Set();
    world.instance.view = { ...VIEW, target };
    world.kubelet.onStream = (stream) => {
      carriers.add(stream.once('close', () => carriers.delete(stream)));
      pod.start(stream);
    };
  });
  afterEach(() => pod[Symbol.dispose]());

  it('costs the API server no stream, and is the same shell, until it ends', async () => {
    const client = world.open('token', '?columns=100&rows=30');
    await client.shows('$ ');
    expect(world.kubelet.paths).toHaveLength(1);
    await waitFor('the end of the exec stream', () => carriers.size === 0);
    expect(JSON.parse(pod.opened[0] ?? '')).toMatchObject({ terminal: { columns: 100, rows: 30 } });
    client.send(4, '{"Width":120,"Height":40}');
    await client.shows('size 120 40');
    client.send(0, 'uname\r');
    await client.shows('uname');
    client.send(0, 'exit\r');
    await waitFor('the status', () => client.status);
    expect(client.status).toMatchObject({ status: 'Failure', details: { causes: [{ message: '7' }] } });
    await waitFor('the end', () => client.closed && pod.links.size === 0);
    expect(told('terminal-end')).toMatchObject([{ status: 7, reason: 'the shell ended', bytesIn: 11 }]);
    expect(world.kubelet.paths).toHaveLength(1);
  });

  it.each([
    ['its key is revoked', () => void world.tokens.delete('token'), /The API key is over/],
    ['its instance stops', () => void (world.instance.view = { ...VIEW, target: undefined }), /i-one is stopped/],
  ])('ends when %s, and its shell with it', async (_when, act, why) => {
    const client = world.open('token');
    await client.shows('$ ');
    act();
    world.changed();
    await waitFor('the status', () => client.status);
    expect(client.status?.message).toMatch(why);
    await waitFor('the end of the link', () => pod.links.size === 0);
  });

  it('ends with its client', async () => {
    const client = world.open('token');
    await client.shows('$ ');
    client.socket.terminate();
    await waitFor('the end of the link', () => pod.links.size === 0);
    await waitFor('the record', () => told('terminal-end').length === 1);
    expect(told('terminal-end')).toMatchObject([{ reason: 'closed' }]);
  });

  it('says that the connection is lost, and ends what was left in the pod', async () => {
    const client = world.open('token');
    await client.shows('$ ');
    for (const link of pod.links) link.destroy();
    await waitFor('the status', () => client.status);
    expect(client.status?.message).toContain('the connection to the instance was lost');
    await waitFor('the hang-up', () => world.kubelet.paths.length === 2);
  });

  it('goes by exec where that way is closed', async () => {
    let isFirst = true;
    world.kubelet.onStream = (stream) => {
      if (isFirst) stream.send(frame(1, '{"error":"no address"}\n'));
      else shell(stream);
      isFirst = false;
    };
    for (const streams of [2, 3]) {
      const client = world.open('token');
      await client.shows('$ ');
      expect(world.kubelet.paths).toHaveLength(streams);
    }
  });
});

describe('who is refused', () => {
  async function refusal(token: string, protocols?: string[]): Promise<{ status: number; text: string }> {
    const client = world.open(token, '', protocols);
    return await waitFor('the refusal', () => client.refused);
  }

  it('is everybody without a key that may', async () => {
    world.tokens.set('reads', caller('key-2', { scopes: ['compute:read'] }));
    world.tokens.set('other', caller('key-3', { namespace: 'other' }));
    expect(await refusal('wrong')).toMatchObject({ status: 401 });
    expect(await refusal('reads')).toMatchObject({ status: 403 });
    // To another tenant the instance does not exist.
    expect(await refusal('other')).toMatchObject({ status: 404 });
    expect(world.kubelet.paths).toEqual([]);
  });

  it('is a caller of an instance that does not run, in words', async () => {
    world.instance.view = { ...VIEW, target: undefined };
    const { status, text } = await refusal('token');
    expect([status, text]).toEqual([409, expect.stringContaining('Instance i-one is stopped')]);
    const url = world.url.replace('ws', 'http');
    const plain = await fetch(url, { headers: { authorization: 'Bearer token' } });
    expect([plain.status, await plain.text()]).toEqual([409, text]);
    world.instance.view = VIEW;
    expect((await fetch(url, { headers: { authorization: 'Bearer token' } })).status).toBe(426);
  });

  it('is a client of another protocol', async () => {
    expect(await refusal('token', ['v4.channel.k8s.io'])).toMatchObject({ status: 400 });
  });
});

it('a tenant has as many as its ceiling says, and gets a place back', async () => {
  await world[Symbol.asyncDispose]();
  const ssh = { ...DEFAULT_CEILINGS.ssh, connections: 1 };
  world = await terminalWorld({ clock, ceilingsOf: () => ({ ...DEFAULT_CEILINGS, policies: ['gold'], ssh }) });
  const first = world.open('token');
  await first.shows('$ ');
  const second = world.open('token');
  const { status, text } = await waitFor('the refusal', () => second.refused);
  expect(status).toBe(429);
  expect(text).toContain('change ssh.connections in TenantPolicy gold');
  first.socket.close();
  await waitFor('the place', async () => {
    const next = world.open('token');
    await waitFor('an answer', () => next.output !== '' || next.refused !== undefined);
    return next.refused === undefined;
  });
});

describe('a terminal ends', () => {
  it('when its key is revoked, and its shell with it', async () => {
    const client = world.open('token');
    await client.shows('$ ');
    const shells = world.kubelet.paths.length;
    world.tokens.delete('token');
    world.changed();
    await waitFor('the status', () => client.status);
    expect(client.status?.message).toContain('The API key is over');
    // The processes of the session are ended by another call.
    await waitFor('the hang-up', () => world.kubelet.paths.length > shells);
    expect(told('terminal-end')).toMatchObject([{ reason: expect.stringContaining('API key') as string }]);
  });

  it('when its instance stops, is deleted, or has another pod', async () => {
    const target = { ...VIEW.target, uid: 'pod-2' } as typeof VIEW.target;
    for (const view of [{ ...VIEW, target: undefined }, undefined, { ...VIEW, uid: 'u2' }, { ...VIEW, target }]) {
      world.instance.view = VIEW;
      const client = world.open('token');
      await client.shows('$ ');
      world.instance.view = view;
      world.changed();
      await waitFor('the end', () => client.closed);
      expect(client.status?.message).toMatch(/Instance i-one (?:is|was) /);
    }
  });

  it('when nobody vouches for its person any more, and not before', async () => {
    const person = (id: string, seconds: number) =>
      caller(id, { vouchedUntil: clock.now() + seconds * 1000, name: 'ann' });
    world.tokens.set('ann-1', person('person/ann/9', 45));
    const client = world.open('ann-1');
    await client.shows('$ ');
    world.changed();
    expect(client.questions).toBe(0);
    clock.stall(36_000);
    world.changed();
    await waitFor('the question', () => client.questions === 1);
    // Of another sign-in, and of the same one.
    world.tokens.set('eve-1', person('person/eve/9', 60));
    client.send(5, 'eve-1');
    world.tokens.set('ann-2', person('person/ann/9', 45));
    client.send(5, 'ann-2');
    client.send(0, 'typed');
    await client.shows('typed');
    clock.stall(20_000);
    world.changed();
    client.send(0, 'again');
    await client.shows('again');
    client.send(5, 'eve-1');
    client.send(0, 'and again');
    await client.shows('and again');
    clock.stall(26_000);
    world.changed();
    await waitFor('the end', () => client.closed);
    expect(client.status?.message).toContain('The sign-in is over');
  });

  it('when the replica stops, with a word', async () => {
    const client = world.open('token');
    await client.shows('$ ');
    await world.server.close(0);
    expect(client.status?.message).toContain('The gateway restarts');
  });
});
