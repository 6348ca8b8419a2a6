import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { CliFailure } from '../failure.ts';
import { plain } from '../text.ts';
import type { Kubectl } from './kubectl.ts';

const HOST = '127.0.0.1';
const LISTENS = /^Forwarding from 127\.0\.0\.1:(\d+) ->/;
const HANDLES = /^Handling connection for (\d+)$/;
/** Milliseconds until kubectl says that it has a connection. */
const HANDLED_MS = 5_000;
/** Milliseconds in which a kubectl that has given up its port is gone too. */
const GRACE_MS = 25;
/** Milliseconds before a forward that ended begins again. */
const PAUSE_MS = 500;

/** Where a forward leads. */
export interface Target {
  namespace: string;
  service: string;
  port: number;
}

type Sleep = (ms: number) => Promise<void>;

/** One `kubectl port-forward`, on a local port of its choice. */
class Forward {
  /** Rejects with kubectl's words when it ends before. */
  readonly ready: Promise<number>;
  /** Resolves when kubectl is gone. */
  readonly ended: Promise<unknown>;
  readonly #child: ChildProcess;
  readonly #sleep: Sleep;
  #isOver = false;
  #listens: (port: number) => void = () => undefined;
  #handles: () => void = () => undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(kubectl: Kubectl, { namespace, service, port }: Target, sleep: Sleep) {
    this.#sleep = sleep;
    this.#child = kubectl.start(['port-forward', '-n', namespace, `service/${service}`, `:${port}`]);
    let [said, errors] = ['', ''];
    this.#child.stderr?.on('data', (part) => (errors = (errors + String(part)).slice(-1000)));
    this.#child.stdout?.on('data', (part) => {
      const lines = (said + String(part)).split('\n');
      said = (lines.pop() ?? '').slice(-1000);
      for (const line of lines) this.#heard(line);
    });
    this.ended = once(this.#child, 'close').finally(() => {
      this.#isOver = true;
    });
    const fails = this.ended.then(() => {
      throw new CliFailure(`kubectl port-forward failed: ${plain(errors.trim())}`);
    });
    this.ready = Promise.race([new Promise<number>((resolve) => (this.#listens = resolve)), fails]);
    this.ended.catch(() => undefined);
    this.ready.catch(() => undefined);
  }

  /**
   * A connection that this kubectl has. When it ends, its port is free, and another user of this machine may listen there
   * for the key: so kubectl must say that the connection is its own before a byte is sent, and still be there.
   */
  connect(): Promise<Socket> {
    const socket = this.#turn.then(() => this.#dial());
    this.#turn = socket.catch(() => undefined);
    return socket;
  }

  stop(): void {
    this.#child.kill();
  }

  #heard(line: string): void {
    const port = LISTENS.exec(line)?.[1];
    if (port !== undefined) this.#listens(Number(port));
    else if (HANDLES.test(line)) this.#handles();
  }

  async #dial(): Promise<Socket> {
    const port = await this.ready;
    const handled = new Promise<void>((resolve) => (this.#handles = resolve));
    const socket = connect({ host: HOST, port });
    const late = AbortSignal.timeout(HANDLED_MS);
    const gone = Promise.race([this.ended, once(late, 'abort'), once(socket, 'close')]).then(() => {
      throw new CliFailure('kubectl port-forward does not take connections.');
    });
    gone.catch(() => undefined);
    try {
      await Promise.race([Promise.all([once(socket, 'connect'), handled]), gone]);
      await Promise.race([this.#sleep(GRACE_MS), gone]);
      if (this.#isOver) await gone;
      return socket;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }
}

/**
 * A local port that leads to a Service of the cluster until it is closed. It is this process's own from the start to the
 * end, whatever becomes of the kubectl behind it, which ends with the pod that it led to and begins again.
 */
export class ForwardedPort {
  readonly #begin: () => Forward;
  readonly #sleep: Sleep;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #forward: Forward;
  #over: Promise<void> = Promise.resolve();
  #isClosed = false;

  private constructor(begin: () => Forward, sleep: Sleep) {
    this.#begin = begin;
    this.#sleep = sleep;
    this.#forward = begin();
    this.#server = createServer((socket) => void this.#relay(socket));
  }

  /** Rejects with kubectl's words when the forward cannot begin. */
  static async open(kubectl: Kubectl, target: Target, sleep: Sleep): Promise<ForwardedPort> {
    const port = new ForwardedPort(() => new Forward(kubectl, target, sleep), sleep);
    try {
      await port.#forward.ready;
      await once(port.#server.listen(0, HOST), 'listening');
    } catch (error) {
      await port.close();
      throw error;
    }
    port.#over = port.#goOn();
    return port;
  }

  get url(): string {
    const address = this.#server.address();
    return `http://${HOST}:${address !== null && typeof address === 'object' ? address.port : 0}`;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    this.#forward.stop();
    await this.#over;
  }

  async #goOn(): Promise<void> {
    for (;;) {
      await this.#forward.ended.catch(() => undefined);
      if (!this.#isClosed) await this.#sleep(PAUSE_MS);
      if (this.#isClosed) return;
      this.#forward = this.#begin();
    }
  }

  /** Until kubectl listens again the server does not answer, and who follows something tries again. */
  async #relay(client: Socket): Promise<void> {
    this.#hold(client);
    try {
      const server = await this.#forward.connect();
      this.#hold(server);
      client.pipe(server).pipe(client);
      client.once('close', () => server.destroy());
      server.once('close', () => client.destroy());
    } catch {
      client.destroy();
    }
  }

  #hold(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => this.#sockets.delete(socket));
    if (this.#isClosed) socket.destroy();
  }
}
