import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Step } from '../interface/step.ts';

/** Whether what a sender says of the sender before it is believed: its address, and how many senders came after it. */
export type Trust = (address: string, hop: number) => boolean;

/** Knows which connections come from proxies in front, and by that where clients are. */
export class Proxies {
  readonly #trust: Trust;
  readonly #connections = new WeakSet<Socket>();

  constructor(trust: Trust) {
    this.#trust = trust;
  }

  /** The connection came at an address where only proxies connect. */
  add(connection: Socket): void {
    this.#connections.add(connection);
  }

  /** Takes away what a client says of itself in the name of a proxy. */
  readonly hear: Step = (request, _response, next) => {
    if (!this.#connections.has(request.socket)) {
      for (const name of Object.keys(request.headers))
        if (name.startsWith('x-forwarded-')) Reflect.deleteProperty(request.headers, name);
    }
    next();
  };

  /** The address of the client, as Express's `request.ip`. */
  readonly addressOf = ({ socket, headers }: IncomingMessage): string => {
    const told = String(headers['x-forwarded-for'] ?? '').split(',');
    let address = socket.remoteAddress ?? '';
    for (const [hop, one] of told.toReversed().entries()) {
      if (one.trim() === '' || !this.#trust(address, hop)) break;
      address = one.trim();
    }
    return address;
  };
}
