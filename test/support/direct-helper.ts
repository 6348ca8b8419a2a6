import { randomBytes } from 'node:crypto';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { connect, type TLSSocket } from 'node:tls';
import { systemClock } from '../../src/lib/clock.ts';
import { dialTls, type Wire } from '../../src/direct/dial.ts';
import { DirectLink } from '../../src/direct/direct-link.ts';
import { NO_TURN } from '../../src/lib/byte-turns.ts';
import { FairBytes } from '../../src/lib/shares.ts';
import { waitFor } from './wait-for.ts';

/** The helper as a process of this machine, as exec starts it in a pod. */
export interface Helper {
  child: ChildProcessWithoutNullStreams;
  token: Buffer;
  port: number;
  certificate: Buffer;
  /** Resolves with the status at its end. */
  exit: Promise<number | null>;
  /** Connects as the gateway does, and sends these bytes. */
  dial(first: Buffer): Promise<Wire>;
  link(): Promise<DirectLink>;
  /** Connects as somebody who does not know the certificate, and does nothing. */
  stranger(): Promise<TLSSocket>;
}

const HOST = '127.0.0.1';

/** The first line of a stream. */
export async function firstLine(stream: Readable): Promise<string> {
  let text = '';
  stream.setEncoding('utf8').on('data', (part: string) => (text += part));
  while (!text.includes('\n')) await once(stream, 'data');
  return text;
}

function hello(token: Buffer): string {
  return `${JSON.stringify({ version: 1, address: HOST, token: token.toString('hex') })}\n`;
}

async function linkOn(wire: Wire): Promise<DirectLink> {
  const link = new DirectLink(wire, systemClock(), {
    portion: new FairBytes(64 * 1024 * 1024).of('team'),
    turn: NO_TURN,
  });
  await link.ready;
  return link;
}

/** Starts a helper from the folder of its program. */
export async function startHelper(programs: string): Promise<Helper> {
  const child = spawn(`${programs}/direct`);
  const exit = once(child, 'exit').then(([code]) => code as number | null);
  const token = randomBytes(32);
  child.stdin.on('error', () => undefined);
  child.stdin.write(hello(token));
  const said = JSON.parse(await firstLine(child.stdout)) as { port: number; certificate: string };
  const { port } = said;
  const certificate = Buffer.from(said.certificate, 'base64');
  const dial = async (first: Buffer): Promise<Wire> => {
    const wire = await dialTls({ host: HOST, port, certificate }, new AbortController().signal);
    wire.socket.write(first);
    return wire;
  };
  return {
    child,
    token,
    port,
    certificate,
    exit,
    dial,
    link: async () => await linkOn(await dial(token)),
    stranger: async () => {
      const socket = connect({ host: HOST, port, rejectUnauthorized: false });
      socket.on('error', () => undefined);
      await once(socket, 'secureConnect');
      return socket;
    },
  };
}

/** The helper for ports as a process of this machine, as it runs in an instance. */
export interface PortsHelper extends Disposable {
  /** A connection to it through the loopback. */
  stream(): Promise<Socket>;
  link(): Promise<DirectLink>;
}

/** Starts it on a port of the loopback. */
export async function startPortsHelper(programs: string, port: number): Promise<PortsHelper> {
  const child = spawn(`${programs}/direct`, ['ports', String(port)]);
  const stream = async (): Promise<Socket> => {
    const socket = connectTcp(port, HOST).on('error', () => undefined);
    await once(socket, 'connect');
    return socket;
  };
  const isUp = (): Promise<boolean> =>
    stream().then(
      (socket) => Boolean(socket.destroy()),
      () => false,
    );
  await waitFor('the helper', isUp);
  return {
    stream,
    link: async () => {
      const token = randomBytes(32);
      const socket = await stream();
      socket.write(hello(token));
      const said = JSON.parse(await firstLine(socket)) as { port: number; certificate: string };
      const certificate = Buffer.from(said.certificate, 'base64');
      const wire = await dialTls({ host: HOST, port: said.port, certificate }, new AbortController().signal);
      wire.socket.write(token);
      const link = await linkOn(wire);
      socket.destroy();
      return link;
    },
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  };
}
