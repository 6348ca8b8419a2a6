import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { OpenRequest } from '../../../src/direct/link-channel.ts';
import { NO_TURN } from '../../../src/lib/byte-turns.ts';
import { socketOf } from '../../../src/ports/link-socket.ts';
import { freePorts } from '../../../tools/lib/free-ports.ts';
import { buildPrograms } from '../../../tools/lib/images/tools-image.ts';
import { cacheFolder } from '../../../tools/lib/paths.ts';
import { firstLine, type PortsHelper, startPortsHelper } from '../../support/direct-helper.ts';
import { describeWith } from '../../support/needs.ts';
import { waitFor } from '../../support/wait-for.ts';

// Go is where the programs for the real node are built.
const withGo = describeWith('real node');
const server = createServer({ allowHalfOpen: true }, (socket) => {
  let all = '';
  socket.on('data', (part: Buffer) => (all += part.toString())).on('end', () => socket.end(`got ${all}`));
});

let helper: PortsHelper;
let port: number;
let closedPort: number;

beforeAll(async () => {
  const [own = 0, closed = 0] = await freePorts(2);
  closedPort = closed;
  helper = await startPortsHelper(await buildPrograms(cacheFolder(process.env)), own);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
}, 300_000);
afterAll(() => {
  helper[Symbol.dispose]();
  server.close();
});

withGo('the helper for ports', () => {
  it('carries connections of several gateways to ports of the loopback', async () => {
    const links = await Promise.all([helper.link(), helper.link()]);
    const answers = links.flatMap((link) =>
      ['abc', 'de'].map(async (sent) => {
        const socket = socketOf(link.open({ port }), NO_TURN);
        socket.end(sent);
        return await text(socket);
      }),
    );
    expect(await Promise.all(answers)).toEqual(['got abc', 'got de', 'got abc', 'got de']);
    for (const link of links) link.close();
  });

  it('says in the words of the kernel why a port does not answer', async () => {
    const link = await helper.link();
    const socket = socketOf(link.open({ port: closedPort }), NO_TURN);
    await waitFor('its end', () => socket.destroyed);
    expect(socket.errored).toMatchObject({ message: 'connection refused' });
    link.close();
  });

  it.each<[string, OpenRequest]>([
    ['program', { argv: ['/bin/sh', '-c', 'true'], script: '' }],
    ['address', { network: 'tcp', address: '127.0.0.1:1' }],
    ['Unix socket', { network: 'unix', address: '/run/x' }],
    ['port 0', { port: 0 }],
  ])('opens no %s', async (_what, request) => {
    const link = await helper.link();
    await expect(link.open(request).opened).rejects.toThrow('opens ports of its instance, and nothing else');
    link.close();
  });

  it.each([
    ['another protocol', 'GET / HTTP/1.1\r\n', 'no JSON'],
    ['an endless line', 'x'.repeat(5000), 'no line'],
  ])('says why it takes no %s, and serves others', async (_what, line, reason) => {
    const stream = await helper.stream();
    stream.write(line);
    expect(JSON.parse(await firstLine(stream))).toEqual({ error: expect.stringContaining(reason) as string });
    const link = await helper.link();
    link.close();
  });

  it('serves as many at once as there may be replicas, and sends the others away', async () => {
    const streams = await Promise.all(Array.from({ length: 70 }, () => helper.stream()));
    await waitFor('six to be sent away', () => streams.filter((stream) => stream.resume().closed).length >= 6);
    for (const stream of streams) stream.destroy();
  });
});
