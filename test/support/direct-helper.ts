import { randomBytes } from 'node:crypto';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';
import { systemClock } from '../../src/lib/clock.ts';
import { dialTls, type Wire } from '../../src/ssh/direct/dial.ts';
import { DirectLink } from '../../src/ssh/direct/direct-link.ts';
import { FairBytes } from '../../src/ssh/ssh2/fair-bytes.ts';

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
export async function firstLine(child: ChildProcessWithoutNullStreams): Promise<string> {
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => (text += part));
  while (!text.includes('\n')) await once(child.stdout, 'data');
  return text;
}

/** Starts a helper from the folder of its program. */
export async function startHelper(programs: string): Promise<Helper> {
  const child = spawn(`${programs}/direct`);
  const exit = once(child, 'exit').then(([code]) => code as number | null);
  const token = randomBytes(32);
  child.stdin.on('error', () => undefined);
  child.stdin.write(`${JSON.stringify({ version: 1, address: HOST, token: token.toString('hex') })}\n`);
  const said = JSON.parse(await firstLine(child)) as { port: number; certificate: string };
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
    link: async () => {
      const link = new DirectLink(await dial(token), systemClock(), new FairBytes(64 * 1024 * 1024).of('team'));
      await link.ready;
      return link;
    },
    stranger: async () => {
      const socket = connect({ host: HOST, port, rejectUnauthorized: false });
      socket.on('error', () => undefined);
      await once(socket, 'secureConnect');
      return socket;
    },
  };
}
