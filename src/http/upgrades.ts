import { type IncomingMessage, type RequestListener, type Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Socket } from 'node:net';

interface Upgrade {
  socket: Duplex;
  head: Buffer;
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>();

/** The socket of a request that asks to switch protocols, for whoever grants it. */
export function upgradeOf(request: IncomingMessage): Upgrade | undefined {
  return upgrades.get(request);
}

/**
 * Other switches are not offered: such a request is answered as if it had not asked (RFC 9110 section 7.8). Nor is one
 * with a body, which no handshake has (RFC 6455 section 4.1): until it has come, Node offers a stream that is no socket.
 */
export function isWebSocket({ method, headers }: IncomingMessage): boolean {
  if (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0) return false;
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket';
}

/**
 * Lets requests that ask for a WebSocket go the way of all others, through authentication, limits and the log. Whoever
 * does not grant the switch answers as usual, and the connection ends: from here on Node sets it no time limit, and nobody
 * reads it to learn that the client is gone. The function returned cuts what is open.
 */
export function serveUpgrades(server: Server, app: RequestListener): () => void {
  const open = new Set<Duplex>();
  server.on('upgrade', (request, duplex, head) => {
    // A connection of ours is always a socket; the type allows for other transports.
    const socket = duplex as Socket;
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    socket.on('error', () => undefined);
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    try {
      response.assignSocket(socket);
    } catch {
      // The request before it on this connection has not had its whole answer yet. No client that means well does that.
      socket.destroy();
      return;
    }
    response.once('finish', () => socket.destroySoon());
    upgrades.set(request, { socket, head });
    app(request, response);
  });
  return () => {
    for (const socket of open) socket.destroy();
  };
}
