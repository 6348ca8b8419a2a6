import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';

/** Enough of a Valkey for a counter: each sum that it tells is a thousand. */
export class ScriptedValkey {
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((socket) => this.#serve(socket));
  hangs = false;
  /** What answers wait for. */
  gate: Promise<void> | undefined;
  /** Commands beside those with which a client begins. */
  counted = 0;

  async start(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      const isGreeting = /\r\n(?:info|client)\r\n/i.test(data.toString());
      if (!isGreeting) this.counted += 1;
      if (this.hangs) return;
      const sum = ':1000\r\n:60000\r\n';
      const sums = data.includes('KEYS[2]') ? `*4\r\n${sum}${sum}` : `*2\r\n${sum}`;
      const answer = isGreeting ? '$7\r\nloads:0\r\n' : sums;
      void Promise.resolve(this.gate).then(() => socket.write(answer));
    });
  }
}
