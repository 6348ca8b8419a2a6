import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import type { WebSocket } from 'ws';
import { FROM_POD, FrameReader, headerOf, TO_POD } from '../../src/direct/frames.ts';
import { createAuthority, issue } from '../../tools/lib/x509.ts';
import { frame } from './channel-server.ts';

const HOST = '127.0.0.1';
const TOKEN_BYTES = 32;
/** A pid, and the status of a shell that ends. */
const SEVEN = Buffer.from([0, 0, 0, 7]);

/** A helper in a pod whose programs are shells: `exit` ends one with 7, everything else comes back. */
export interface DirectShell extends Disposable {
  /** Serves the exec stream that starts the helper. */
  start(stream: WebSocket): void;
  /** Connections of the gateway that are open. */
  readonly links: ReadonlySet<TLSSocket>;
  /** What the gateway asked the helper to start. */
  readonly opened: string[];
}

/** What a shell answers to a frame. */
function answerTo(type: number, payload: Buffer): [type: number, payload: Buffer][] {
  if (type === TO_POD.open) {
    return [
      [FROM_POD.opened, SEVEN],
      [FROM_POD.stdout, Buffer.from('$ ')],
    ];
  }
  if (type === TO_POD.resize) {
    return [[FROM_POD.stdout, Buffer.from(`size ${payload.readUInt16BE(0)} ${payload.readUInt16BE(2)}\r\n`)]];
  }
  if (type !== TO_POD.input) return [];
  return [payload.includes('exit') ? [FROM_POD.exit, SEVEN] : [FROM_POD.stdout, payload]];
}

/** A helper that listens on this machine. */
export async function directShell(): Promise<DirectShell> {
  const { key, certificate: cert } = await issue(await createAuthority('test'), {
    commonName: 'helper',
    hosts: [HOST],
  });
  const links = new Set<TLSSocket>();
  const opened: string[] = [];
  const server = createServer({ key, cert }, (socket) => {
    links.add(socket);
    const send = (type: number, channel: number, payload: Buffer): void =>
      void socket.write(Buffer.concat([headerOf(type, channel, payload.length), payload]));
    let before = TOKEN_BYTES;
    const frames = new FrameReader({
      output: () => undefined,
      control: (type, channel, payload) => {
        if (type === TO_POD.open) opened.push(payload.toString());
        for (const [kind, bytes] of answerTo(type, payload)) send(kind, channel, bytes);
      },
    });
    socket.on('error', () => undefined).once('close', () => links.delete(socket));
    send(FROM_POD.pong, 0, Buffer.alloc(0));
    socket.on('data', (chunk: Buffer) => {
      const rest = chunk.subarray(before);
      before -= chunk.length - rest.length;
      frames.read(rest);
    });
  });
  server.listen(0, HOST);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const announcement = { port, certificate: new X509Certificate(cert).raw.toString('base64') };
  return {
    links,
    opened,
    start: (stream) => stream.send(frame(1, `${JSON.stringify(announcement)}\n`)),
    [Symbol.dispose]: () => {
      for (const link of links) link.destroy();
      server.close();
    },
  };
}
