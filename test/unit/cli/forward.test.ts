import type { ChildProcess } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ForwardedPort } from '../../../src/cli/kube/forward.ts';
import type { Kubectl } from '../../../src/cli/kube/kubectl.ts';
import { waitFor } from '../../support/wait-for.ts';

const KEY = 'Authorization: Bearer berth_secret';

/** A program that listens on a port of this machine. */
class Listener {
  readonly sockets: Socket[] = [];
  heard = '';
  readonly #server: Server;

  constructor(onConnection: () => void = () => undefined) {
    this.#server = createServer((socket) => {
      this.sockets.push(socket);
      socket.on('error', () => undefined);
      socket.on('data', (part) => {
        this.heard += String(part);
        socket.write('an answer');
      });
      onConnection();
    });
  }

  async listen(port = 0): Promise<number> {
    await once(this.#server.listen(port, '127.0.0.1'), 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    if (this.#server.listening) await once(this.#server.close(), 'close');
  }
}

/** A kubectl port-forward: it listens, and says what kubectl says. */
class Child extends EventEmitter {
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly listener = new Listener(() => this.says());
  port = 0;

  async begin(): Promise<void> {
    this.port = await this.listener.listen();
    this.stdout.write(`Forwarding from 127.0.0.1:${this.port} -> 8080\nForwarding from [::1]:${this.port} -> 8080\n`);
  }

  says(): void {
    this.stdout.write(`Handling connection for ${this.port}\n`);
  }

  kill(): void {
    void this.listener.close().then(() => this.emit('close'));
  }
}

let children: Child[];
let others: Listener[];
let port: ForwardedPort;

beforeEach(async () => {
  [children, others] = [[], []];
  const start = (): ChildProcess => {
    const child = new Child();
    children.push(child);
    void child.begin();
    return child as unknown as ChildProcess;
  };
  const target = { namespace: 'berth-system', service: 'berth-api', port: 80 };
  port = await ForwardedPort.open({ start } as unknown as Kubectl, target, (ms) => sleep(ms));
});

afterEach(async () => {
  await port.close();
  for (const other of others) await other.close();
});

/** What the other end answers to somebody who sends a key; empty when the connection ends without an answer. */
async function answer(): Promise<string> {
  const socket = connect(Number(new URL(port.url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(KEY);
  const closed = once(socket, 'close').then(() => '');
  const answered = await Promise.race([once(socket, 'data').then(String), closed]);
  socket.destroy();
  return answered;
}

/** Another user of the machine, who takes the port of a kubectl that has given it up and is not gone yet. */
async function taken(child: Child): Promise<Listener> {
  await child.listener.close();
  const other = new Listener();
  others.push(other);
  await other.listen(child.port);
  return other;
}

it('leads to kubectl, and goes on at the same address when another kubectl takes its place', async () => {
  const { url } = port;
  expect(await Promise.all([answer(), answer(), answer()])).toEqual(['an answer', 'an answer', 'an answer']);
  children[0]?.kill();
  await waitFor('the next kubectl', async () => (await answer()) !== '');
  expect([port.url, children.length]).toEqual([url, 2]);
});

it('a program that took the port of kubectl gets no byte', async () => {
  const [child] = children;
  if (child === undefined) throw new Error('There is no kubectl.');
  const other = await taken(child);
  const sent = answer();
  await waitFor('a connection at the other program', () => other.sockets.length > 0);
  child.emit('close');
  expect([await sent, other.heard]).toEqual(['', '']);
});

it('nor does one for whose sake kubectl had a connection right before it ended', async () => {
  const [child] = children;
  if (child === undefined) throw new Error('There is no kubectl.');
  const other = await taken(child);
  const sent = answer();
  await waitFor('a connection at the other program', () => other.sockets.length > 0);
  child.says();
  setTimeout(() => child.emit('close'), 1);
  expect([await sent, other.heard]).toEqual(['', '']);
});

it('ends with all that it has open', async () => {
  const socket = connect(Number(new URL(port.url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(KEY);
  await once(socket, 'data');
  const closed = once(socket, 'close');
  await port.close();
  await closed;
  expect(children).toHaveLength(1);
});
