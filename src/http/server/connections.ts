import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { getPrincipal } from '../../access/principal.ts';
import { clientNetwork } from '../../lib/client-network.ts';
import { FairShares } from '../../lib/shares.ts';
import type { UnreadAnswers } from '../../lib/unread-answers.ts';
import { overloaded, unread } from '../interface/errors/busy.ts';
import type { Step } from '../interface/step.ts';

/** Milliseconds that a connection may rest between two requests: longer than load balancers do (60 s on AWS). */
const RESTING_MS = 65_000;
/** The same while more than half of all connections are open. */
const CROWDED_MS = 5_000;

export interface ConnectionBounds {
  /** Connections at once. */
  most: number;
  /** Of these, connections of one client address without an accepted request. */
  perAddress: number;
}

interface Connection {
  /** Undefined for the connection of a proxy, which is that of many clients. */
  address: string | undefined;
  /** Requests under way whose sender was accepted. */
  accepted: number;
}

/**
 * Bounds the connections of a server so that none who hold many keep others out. A connection without an accepted
 * request (it rests, has sent no complete request, or its sender has shown no valid key) gives way to a new one, the one
 * that was used longest ago first: those of the same address when that has too many, any when all are used.
 */
export class Connections {
  readonly #bounds: ConnectionBounds;
  readonly #open = new Map<Socket, Connection>();
  /** Those without an accepted request, the one that was used longest ago first. */
  readonly #resting = new Set<Socket>();
  readonly #restingBy = new Map<string, Set<Socket>>();
  readonly #servers: Pick<Server, 'keepAliveTimeout'>[] = [];

  constructor(bounds: ConnectionBounds) {
    this.#bounds = bounds;
  }

  /** @param isProxied proxies alone connect to the server */
  guard(server: Server, isProxied: boolean): void {
    this.#servers.push(server);
    server.keepAliveTimeout = RESTING_MS;
    server.on('connection', (socket) => this.#add(socket, isProxied));
    server.prependListener('request', ({ socket }) => this.#touch(socket));
  }

  /** Keeps the connection of an accepted request until its answer has ended. */
  keep(response: ServerResponse): void {
    const { socket } = response.req;
    const connection = this.#open.get(socket);
    if (connection === undefined || response.closed) return;
    connection.accepted += 1;
    this.#wake(socket, connection);
    response.once('close', () => {
      connection.accepted -= 1;
      if (connection.accepted === 0 && this.#open.has(socket)) this.#rest(socket, connection);
    });
  }

  #add(socket: Socket, isProxied: boolean): void {
    if (this.#open.size >= this.#bounds.most && !this.#closeOldest(this.#resting)) {
      socket.destroy();
      return;
    }
    const connection = { address: isProxied ? undefined : clientNetwork(socket.remoteAddress), accepted: 0 };
    this.#open.set(socket, connection);
    socket.once('close', () => this.#remove(socket));
    this.#rest(socket, connection);
    this.#setTimeouts();
  }

  #touch(socket: Socket): void {
    const connection = this.#open.get(socket);
    if (connection?.accepted !== 0) return;
    this.#wake(socket, connection);
    this.#rest(socket, connection);
  }

  #rest(socket: Socket, { address }: Connection): void {
    this.#resting.add(socket);
    if (address === undefined) return;
    const same = this.#restingBy.get(address) ?? new Set();
    this.#restingBy.set(address, same.add(socket));
    if (same.size > this.#bounds.perAddress) this.#closeOldest(same);
  }

  #wake(socket: Socket, { address }: Connection): void {
    this.#resting.delete(socket);
    if (address === undefined) return;
    const same = this.#restingBy.get(address);
    same?.delete(socket);
    if (same?.size === 0) this.#restingBy.delete(address);
  }

  #closeOldest(sockets: Set<Socket>): boolean {
    const [oldest] = sockets;
    if (oldest === undefined) return false;
    // At once: its event `close` comes too late for the count.
    this.#remove(oldest);
    oldest.destroy();
    return true;
  }

  #remove(socket: Socket): void {
    const connection = this.#open.get(socket);
    if (connection === undefined) return;
    this.#open.delete(socket);
    this.#wake(socket, connection);
    this.#setTimeouts();
  }

  #setTimeouts(): void {
    const isCrowded = this.#open.size > this.#bounds.most / 2;
    for (const server of this.#servers) server.keepAliveTimeout = isCrowded ? CROWDED_MS : RESTING_MS;
  }
}

/** A tenant may have as many requests under way as connections are left for others: half of all when it is alone. */
const FACTOR = 1;

/**
 * Keeps the connection of a request whose key was accepted. Connections that are kept give way to none, so a tenant has
 * a share of them.
 * @param most connections of the replica
 */
export function keepAccepted(connections: Connections, most: number): Step {
  const shares = new FairShares(most, FACTOR);
  return (request, response, next) => {
    const { namespace } = getPrincipal(request);
    if (response.closed) return;
    if (shares.take(namespace, 1) !== 'taken') throw overloaded('requests of this tenant');
    response.once('close', () => shares.give(namespace, 1));
    connections.keep(response);
    next();
  };
}

/** Lets a tenant ask for more only while its clients take what they get. */
export function countAnswers(answers: UnreadAnswers): Step {
  return (request, response, next) => {
    if (!answers.begin(response, getPrincipal(request).namespace)) throw unread();
    next();
  };
}
